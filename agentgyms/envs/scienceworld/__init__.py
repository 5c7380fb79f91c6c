"""ScienceWorld (Wang et al. 2022, arXiv:2203.07540): experiments of elementary science in text.

Takes commands such as `open door to kitchen`; returns the texts of the real engine, a jar that
`worker` plays in a child process. `engine` keeps such children warm, `tasks` lists what there is.
"""
