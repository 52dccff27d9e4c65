"""What tests, benchmarks and tools share: servers, Spark, a lake's road, segments to decode."""
