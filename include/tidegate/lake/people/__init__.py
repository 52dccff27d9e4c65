"""The lake's records about people: open questions, answers, actions.

In:  a lake; a person's answer or action.
Out: questions.py: the open questions. judgements.py: the answers about places in a source's log. audit.py: each action
     with its author and its result.
"""
