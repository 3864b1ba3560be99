"""What ``propreg doctor`` looks at. Nothing here imports torch, PyG or NumPy, or starts CUDA, in this process."""
