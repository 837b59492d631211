// Package harbor keeps a ConfigMap with the crew of each Boat.
package harbor

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// BoatKind is the custom kind that ../crd/boats.yaml defines.
var BoatKind = schema.GroupVersionKind{Group: "harbor.example.com", Version: "v1", Kind: "Boat"}

// NewBoat returns an empty Boat. Unstructured spares the example generated types.
func NewBoat() *unstructured.Unstructured {
	boat := &unstructured.Unstructured{}
	boat.SetGroupVersionKind(BoatKind)
	return boat
}

// BoatReconciler writes the ConfigMap NAME-crew of the Boat NAME, and the size of its crew into
// the Boat's status.
type BoatReconciler struct {
	client.Client
}

// SetupWithManager watches Boats and the ConfigMaps that they own.
func (r *BoatReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("boat").
		For(NewBoat()).
		Owns(&corev1.ConfigMap{}).
		Complete(r)
}

// Reconcile brings one Boat up to date. An error makes the manager try again.
func (r *BoatReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	boat := NewBoat()
	if err := r.Get(ctx, req.NamespacedName, boat); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	crew, _, err := unstructured.NestedStringSlice(boat.Object, "spec", "crew")
	if err != nil {
		return ctrl.Result{}, err
	}
	list := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name + "-crew"},
	}
	_, err = controllerutil.CreateOrUpdate(ctx, r.Client, list, func() error {
		list.Data = map[string]string{"crew": strings.Join(crew, "\n")}
		return controllerutil.SetControllerReference(boat, list, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	before := boat.DeepCopy()
	if err := unstructured.SetNestedField(boat.Object, int64(len(crew)), "status", "crewSize"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.Status().Patch(ctx, boat, client.MergeFrom(before))
}
