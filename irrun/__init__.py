"""irrun: validate and run OpenVINO IR models by the written specification."""
