"""The methods, one file or folder each; this table is where a new one is registered."""

# key -> (module in this folder, class); imported when asked for
METHODS = {
    "kmeans": ("baselines.kmeans", "KMeans"),
    "gmm": ("baselines.gmm", "GMM"),
    "pca_kmeans": ("baselines.kmeans", "PCAKMeans"),
    "subkmeans": ("baselines.subkmeans", "SubKMeans"),
    "ae_kmeans": ("baselines.autoencoder", "AEKMeans"),
    "ae_subkmeans": ("baselines.autoencoder", "AESubKMeans"),
    "spectral": ("baselines.spectral", "Spectral"),
    "umap_gmm": ("baselines.spectral", "UMAPGMM"),
    "feature_kmeans": ("baselines.on_features", "FeatureKMeans"),
    "feature_gmm": ("baselines.on_features", "FeatureGMM"),
    "leiden": ("baselines.leiden", "Leiden"),
    "kith": ("kith", "Kith"),
    "dec": ("dec", "DEC"),
    "cm": ("cm", "CM"),
    "cm_em": ("cm_em", "CMEM"),
    "cnet": ("cnet", "CNet"),
    "dekm": ("dekm", "DEKM"),
    "idec": ("idec", "IDEC"),
    "dcec": ("idec", "DCEC"),
    "dcn": ("dcn", "DCN"),
    "dkm": ("dkm", "DKM"),
    "cuegan": ("cuegan", "CueGAN"),
    "acedec": ("acedec", "ACeDeC"),
}
