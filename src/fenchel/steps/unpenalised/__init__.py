"""Problems without a penalty: least squares, Newton steps, linear programs."""
