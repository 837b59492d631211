package main

import (
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	appsconfig "k8s.io/client-go/applyconfigurations/apps/v1"
	coreconfig "k8s.io/client-go/applyconfigurations/core/v1"
	metaconfig "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"context"
)

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	meta := metav1.ObjectMeta{Name: name, Labels: map[string]string{"a": "b"}}
	return &corev1.ConfigMap{ObjectMeta: meta, Data: data, BinaryData: map[string][]byte{"x": {0, 255}}}
}

// events reads a watch until it ends or `most` events are seen.
func events(w watch.Interface, most int) string {
	lines := []string{}
	for event := range w.ResultChan() {
		line := string(event.Type)
		switch object := event.Object.(type) {
		case *metav1.Status:
			line += " " + text(object)
		case *corev1.ConfigMap:
			line += " " + object.Name + " " + text(object.Data)
		case *metav1.PartialObjectMetadata:
			line += " " + object.Name + " " + text(object.Annotations)
		case *unstructured.Unstructured:
			line += " " + object.GetName() + " " + text(object.Object["spec"])
		}
		lines = append(lines, line)
		if len(lines) == most {
			w.Stop()
			break
		}
	}
	return strings.Join(lines, "\n")
}

// playObjects uses one encoding for typed, metadata, and watch requests.
func playObjects(s *session, encoding string) {
	maps := s.typed.CoreV1().ConfigMaps(namespace)
	title := func(name string) string { return encoding + ": " + name }
	name := strings.ReplaceAll(encoding, ".", "-")
	s.step(title("create"), func() (any, error) {
		return maps.Create(s.ctx, configMap(name, map[string]string{"n": "0"}), metav1.CreateOptions{})
	})
	s.step(title("create again"), func() (any, error) {
		return maps.Create(s.ctx, configMap(name, nil), metav1.CreateOptions{})
	})
	s.step(title("get missing"), func() (any, error) { return maps.Get(s.ctx, "none", metav1.GetOptions{}) })
	s.step(title("invalid"), func() (any, error) {
		return maps.Create(s.ctx, configMap("Not A Name", nil), metav1.CreateOptions{})
	})
	s.step(title("stale update"), func() (any, error) {
		stale, err := maps.Get(s.ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		stale.ResourceVersion = "1"
		return maps.Update(s.ctx, stale, metav1.UpdateOptions{})
	})
	patch := func(kind types.PatchType, body string) func() (any, error) {
		return func() (any, error) {
			return maps.Patch(s.ctx, name, kind, []byte(body), metav1.PatchOptions{})
		}
	}
	s.step(title("json patch"), patch(types.JSONPatchType, `[{"op":"add","path":"/data/m","value":"1"}]`))
	s.step(title("json patch fails"), patch(types.JSONPatchType, `[{"op":"test","path":"/data/m","value":"2"}]`))
	s.step(title("merge patch"), patch(types.MergePatchType, `{"data":{"m":null}}`))
	s.step(title("strategic patch"), patch(types.StrategicMergePatchType, `{"metadata":{"finalizers":["peers.test/x"]}}`))
	s.step(title("apply patch"), func() (any, error) {
		body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"},"data":{"n":"9"}}`
		return maps.Patch(s.ctx, name, types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "x"})
	})
	s.step(title("metadata"), func() (any, error) {
		resource := corev1.SchemeGroupVersion.WithResource("configmaps")
		return s.metadata.Resource(resource).Namespace(namespace).Get(s.ctx, name, metav1.GetOptions{})
	})
	s.step(title("counters"), func() (any, error) { return count(s, name) })
	s.step(title("watch"), func() (any, error) { return watched(s, name) })
	s.step(title("watch too old"), func() (any, error) {
		w, err := maps.Watch(s.ctx, metav1.ListOptions{ResourceVersion: "1", TimeoutSeconds: ptr.To[int64](2)})
		if err != nil {
			return nil, err
		}
		return events(w, 1), nil
	})
	s.step(title("delete with a wrong precondition"), func() (any, error) {
		uid := types.UID("wrong")
		return "", maps.Delete(s.ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	})
	s.step(title("delete"), func() (any, error) { return "", maps.Delete(s.ctx, name, metav1.DeleteOptions{}) })
	s.step(title("remove finalizer"), patch(types.MergePatchType, `{"metadata":{"finalizers":null}}`))
	s.step(title("list by pages"), func() (any, error) { return paged(s, name) })
	s.step(title("delete collection"), func() (any, error) {
		return "", maps.DeleteCollection(s.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "a=b"})
	})
}

// count has four goroutines increment one counter, each retrying on conflicts.
func count(s *session, name string) (any, error) {
	maps := s.typed.CoreV1().ConfigMaps(namespace)
	increment := func() error {
		found, err := maps.Get(s.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		var n int
		fmt.Sscan(found.Data["n"], &n)
		found.Data["n"] = fmt.Sprint(n + 1)
		_, err = maps.Update(s.ctx, found, metav1.UpdateOptions{})
		return err
	}
	backoff := retry.DefaultBackoff
	backoff.Steps = 100
	var group sync.WaitGroup
	for range 4 {
		group.Add(1)
		go func() {
			defer group.Done()
			for range 10 {
				_ = retry.RetryOnConflict(backoff, increment)
			}
		}()
	}
	group.Wait()
	found, err := maps.Get(s.ctx, name, metav1.GetOptions{})
	return found.Data, err
}

func watched(s *session, name string) (any, error) {
	maps := s.typed.CoreV1().ConfigMaps(namespace)
	list, err := maps.List(s.ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	w, err := maps.Watch(s.ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return nil, err
	}
	other := name + "-other"
	_, err = maps.Create(s.ctx, configMap(other, nil), metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	_, err = maps.Patch(s.ctx, other, types.MergePatchType, []byte(`{"data":{"a":"b"}}`), metav1.PatchOptions{})
	if err != nil {
		return nil, err
	}
	if err := maps.Delete(s.ctx, other, metav1.DeleteOptions{}); err != nil {
		return nil, err
	}
	return events(w, 3), nil
}

func paged(s *session, name string) (any, error) {
	maps := s.typed.CoreV1().ConfigMaps(namespace)
	for n := range 7 {
		made := configMap(fmt.Sprintf("%s-%d", name, n), nil)
		if _, err := maps.Create(s.ctx, made, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return maps.List(ctx, options)
	})
	pages.PageSize = 3
	names := []string{}
	err := pages.EachListItem(s.ctx, metav1.ListOptions{LabelSelector: "a=b"}, func(one runtime.Object) error {
		names = append(names, one.(*corev1.ConfigMap).Name)
		return nil
	})
	return names, err
}

func (s *session) playApply() {
	deployments := s.typed.AppsV1().Deployments(namespace)
	container := coreconfig.Container().WithName("main").WithImage("example.test/app:1")
	labels := map[string]string{"app": "web"}
	wanted := func(replicas int32) *appsconfig.DeploymentApplyConfiguration {
		template := coreconfig.PodTemplateSpec().WithLabels(labels).
			WithSpec(coreconfig.PodSpec().WithContainers(container))
		selector := metaconfig.LabelSelector().WithMatchLabels(labels)
		return appsconfig.Deployment("web", namespace).WithSpec(appsconfig.DeploymentSpec().
			WithReplicas(replicas).WithSelector(selector).WithTemplate(template))
	}
	by := func(manager string, force bool) metav1.ApplyOptions {
		return metav1.ApplyOptions{FieldManager: manager, Force: force}
	}
	s.step("apply", func() (any, error) { return deployments.Apply(s.ctx, wanted(1), by("one", false)) })
	s.step("apply conflict", func() (any, error) { return deployments.Apply(s.ctx, wanted(2), by("two", false)) })
	s.step("apply by force", func() (any, error) { return deployments.Apply(s.ctx, wanted(3), by("two", true)) })
	s.step("apply status", func() (any, error) {
		status := appsconfig.Deployment("web", namespace).
			WithStatus(appsconfig.DeploymentStatus().WithReplicas(1))
		return deployments.ApplyStatus(s.ctx, status, by("status", true))
	})
	s.step("extract", func() (any, error) {
		found, err := deployments.Get(s.ctx, "web", metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return appsconfig.ExtractDeployment(found, "one")
	})
	s.step("apply without manager", func() (any, error) { return deployments.Apply(s.ctx, wanted(1), by("", true)) })
	s.step("scale", func() (any, error) {
		scaled, err := deployments.GetScale(s.ctx, "web", metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		scaled.Spec.Replicas = 7
		return deployments.UpdateScale(s.ctx, "web", scaled, metav1.UpdateOptions{})
	})
}

var widgets = schema.GroupVersionResource{Group: "peers.test", Version: "v1", Resource: "levers"}

func leverDefinition() *apiextensions.CustomResourceDefinition {
	size := apiextensions.JSONSchemaProps{Type: "integer", Maximum: ptr.To[float64](5)}
	sizes := map[string]apiextensions.JSONSchemaProps{"size": size}
	parts := map[string]apiextensions.JSONSchemaProps{
		"spec":   {Type: "object", Properties: sizes},
		"status": {Type: "object", Properties: sizes},
	}
	return &apiextensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "levers.peers.test"},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: "peers.test",
			Scope: apiextensions.NamespaceScoped,
			Names: apiextensions.CustomResourceDefinitionNames{Plural: "levers", Kind: "Lever"},
			Versions: []apiextensions.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensions.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensions.JSONSchemaProps{Type: "object", Properties: parts},
				},
				Subresources: &apiextensions.CustomResourceSubresources{
					Status: &apiextensions.CustomResourceSubresourceStatus{},
					Scale: &apiextensions.CustomResourceSubresourceScale{
						SpecReplicasPath: ".spec.size", StatusReplicasPath: ".status.size",
					},
				},
			}},
		},
	}
}

func lever(name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "peers.test/v1", "kind": "Lever",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"size": size},
	}}
}

func (s *session) playCustom() {
	definitions := apiextensionsclient.NewForConfigOrDie(s.config).ApiextensionsV1().CustomResourceDefinitions()
	s.step("define", func() (any, error) {
		made, err := definitions.Create(s.ctx, leverDefinition(), metav1.CreateOptions{})
		return made.Spec, err
	})
	levers := s.dynamic.Resource(widgets).Namespace(namespace)
	s.step("served", func() (any, error) {
		return s.eventually(func() bool {
			_, err := levers.List(s.ctx, metav1.ListOptions{})
			return err == nil
		}), nil
	})
	s.step("create lever", func() (any, error) { return levers.Create(s.ctx, lever("one", 1), metav1.CreateOptions{}) })
	s.step("too large", func() (any, error) { return levers.Create(s.ctx, lever("two", 9), metav1.CreateOptions{}) })
	s.step("unknown field", func() (any, error) {
		odd := lever("odd", 1)
		odd.Object["spec"].(map[string]any)["nosuch"] = true
		return levers.Create(s.ctx, odd, metav1.CreateOptions{FieldValidation: "Warn", DryRun: []string{"All"}})
	})
	s.step("apply lever", func() (any, error) {
		return levers.Apply(s.ctx, "one", lever("one", 2), metav1.ApplyOptions{FieldManager: "x", Force: true})
	})
	s.step("status of lever", func() (any, error) {
		body := []byte(`{"status":{"size":2},"spec":{"size":5}}`)
		return levers.Patch(s.ctx, "one", types.MergePatchType, body, metav1.PatchOptions{}, "status")
	})
	s.step("scale lever", func() (any, error) { return scaled(s) })
	s.step("watch levers", func() (any, error) { return watchLevers(s, levers) })
	s.step("undefine", func() (any, error) {
		return "", definitions.Delete(s.ctx, "levers.peers.test", metav1.DeleteOptions{})
	})
}

// scaled changes the scale of a custom object with the polymorphic client, which finds the
// subresource by discovery.
func scaled(s *session) (any, error) {
	s.mapper.Reset()
	kinds := scale.NewDiscoveryScaleKindResolver(s.typed.Discovery())
	scales, err := scale.NewForConfig(s.config, s.mapper, dynamic.LegacyAPIPathResolverFunc, kinds)
	if err != nil {
		return nil, err
	}
	client := scales.Scales(namespace)
	found, err := client.Get(s.ctx, widgets.GroupResource(), "one", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	found.Spec.Replicas = 4
	return client.Update(s.ctx, widgets.GroupResource(), found, metav1.UpdateOptions{})
}

func watchLevers(s *session, levers dynamic.ResourceInterface) (any, error) {
	w, err := levers.Watch(s.ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	body := []byte(`{"spec":{"size":3}}`)
	if _, err := levers.Patch(s.ctx, "one", types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
		return nil, err
	}
	if err := levers.Delete(s.ctx, "one", metav1.DeleteOptions{}); err != nil {
		return nil, err
	}
	return events(w, 3), nil
}
