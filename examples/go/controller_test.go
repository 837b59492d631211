package harbor

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// startManager runs the controller against its own API server until the test ends. envtest finds
// the server through KUBEBUILDER_ASSETS.
func startManager(t *testing.T) client.Client {
	t.Helper()
	// #region environment
	environment := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "crd")},
		ErrorIfCRDPathMissing: true,
	}
	config, err := environment.Start()
	// A failed start may leave servers running, too.
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	// #endregion environment
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&BoatReconciler{Client: manager.GetClient()}).SetupWithManager(manager); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- manager.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	direct, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return direct
}

func waitFor(t *testing.T, what string, condition func(ctx context.Context) (bool, error)) {
	t.Helper()
	ctx := context.Background()
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 20*time.Second, true, condition)
	if err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

func newBoat(t *testing.T, name string, crew ...string) *unstructured.Unstructured {
	t.Helper()
	boat := NewBoat()
	boat.SetNamespace("default")
	boat.SetName(name)
	if err := unstructured.SetNestedStringSlice(boat.Object, crew, "spec", "crew"); err != nil {
		t.Fatal(err)
	}
	return boat
}

func TestBoats(t *testing.T) {
	api := startManager(t)
	ctx := context.Background()

	t.Run("a boat owns the list of its crew", func(t *testing.T) {
		boat := newBoat(t, "elisa", "ann", "bob")
		if err := api.Create(ctx, boat); err != nil {
			t.Fatal(err)
		}
		list := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: "default", Name: "elisa-crew"}
		waitFor(t, "the ConfigMap", func(ctx context.Context) (bool, error) {
			err := api.Get(ctx, key, list)
			return err == nil, client.IgnoreNotFound(err)
		})
		if list.Data["crew"] != "ann\nbob" {
			t.Errorf("the ConfigMap has the crew %q", list.Data["crew"])
		}
		if !metav1.IsControlledBy(list, boat) {
			t.Errorf("the Boat does not own the ConfigMap: %v", list.OwnerReferences)
		}
		waitFor(t, "the status", func(ctx context.Context) (bool, error) {
			if err := api.Get(ctx, client.ObjectKeyFromObject(boat), boat); err != nil {
				return false, err
			}
			size, _, err := unstructured.NestedInt64(boat.Object, "status", "crewSize")
			return size == 2, err
		})
	})

	t.Run("a boat without a crew is rejected", func(t *testing.T) {
		if err := api.Create(ctx, newBoat(t, "empty")); !apierrors.IsInvalid(err) {
			t.Errorf("the server answered %v", err)
		}
	})
}
