"""General helpers, independent of object detection."""
