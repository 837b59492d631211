module example.com/harbor

go 1.23.0

require (
	k8s.io/api v0.32.1
	k8s.io/apimachinery v0.32.1
	sigs.k8s.io/controller-runtime v0.20.4
)
