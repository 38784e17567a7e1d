"""A Structured Streaming job that survives the loss of a bookie, of its gateway and of its driver.

Read in this order
    data       a year of flights, cut by time into a few hundred files
    sink       results by batch id: a batch that comes twice leaves what it left once
    job        the query, plain PySpark: nothing of this project is imported there
    story      what is done to the job, and when
    view       the live picture
    verdict    the same result in batch, row by row
    __main__   ``make demo``
"""
