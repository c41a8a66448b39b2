"""What every method is: a scikit-learn estimator with parameters, fit, predict and save."""
