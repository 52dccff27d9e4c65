"""The lake and people: its questions, their answers, their actions.

In:  a lake; a person's word or action.
Out: questions.py: the open questions. judgements.py: the answers about places in a source's log. audit.py: each action
     with its person and its end.
"""
