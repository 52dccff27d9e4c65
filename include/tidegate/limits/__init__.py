"""Every bound of tidegate in one room, with its unit in the name and its reason beside it; a file for each bounded
room.

A bound says how long to wait, how often to try, or how much to take at most or at least. Sizes of a format stand where
the format is read.

In:  nothing.
Out: constants, all under this one name. A bound that a user may tune is a field of tidegate.config, and takes its
     default from here.
"""

from tidegate.limits.capture import *
from tidegate.limits.cascades import *
from tidegate.limits.commands import *
from tidegate.limits.formats import *
from tidegate.limits.jobs import *
from tidegate.limits.lake import *
from tidegate.limits.snapshot import *
from tidegate.limits.source import *
from tidegate.limits.ticdc import *
from tidegate.limits.tidb import *
from tidegate.limits.units import *
from tidegate.limits.verify import *
