//! Local inference: the only place that names candle.
