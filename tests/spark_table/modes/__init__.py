"""The modes. Each module has those of one kind; importing them is what makes them known."""

from tests.spark_table.modes import joins as joins
from tests.spark_table.modes import keyed_state as keyed_state
from tests.spark_table.modes import sinks as sinks
from tests.spark_table.modes import windows as windows
from tests.spark_table.scene import MODES as MODES
