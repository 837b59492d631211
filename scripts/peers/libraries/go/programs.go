package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sort"
	"strings"
	"sync"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	eventsclient "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/utils/ptr"
)

// seen records what the handlers of an informer are told.
type seen struct {
	lock  sync.Mutex
	lines []string
}

func (r *seen) add(kind string, object any) {
	if gone, isGone := object.(cache.DeletedFinalStateUnknown); isGone {
		object = gone.Obj
	}
	meta := object.(metav1.Object)
	if !strings.HasPrefix(meta.GetName(), "informed") {
		return
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.lines = append(r.lines, kind+" "+meta.GetName())
}

func (r *seen) count() int {
	r.lock.Lock()
	defer r.lock.Unlock()
	return len(r.lines)
}

func (r *seen) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { r.add("add", object) },
		UpdateFunc: func(_, object any) { r.add("update", object) },
		DeleteFunc: func(object any) { r.add("delete", object) },
	}
}

// playInformers runs typed, dynamic, and metadata informers, which stream their lists when the
// environment has KUBE_FEATURE_WatchListClient.
func (s *session) playInformers() {
	resource := corev1.SchemeGroupVersion.WithResource("configmaps")
	typed := informers.NewSharedInformerFactoryWithOptions(s.typed, 0, informers.WithNamespace(namespace))
	dynamic := dynamicinformer.NewFilteredDynamicSharedInformerFactory(s.dynamic, 0, namespace, nil)
	metadata := metadatainformer.NewFilteredSharedInformerFactory(s.metadata, 0, namespace, nil)
	s.step("informers", func() (any, error) {
		maps := s.typed.CoreV1().ConfigMaps(namespace)
		for n := range 3 {
			made := configMap(fmt.Sprintf("informed-%d", n), nil)
			if _, err := maps.Create(s.ctx, made, metav1.CreateOptions{}); err != nil {
				return nil, err
			}
		}
		ctx, cancel := context.WithCancel(s.ctx)
		defer cancel()
		all := []cache.SharedIndexInformer{
			typed.Core().V1().ConfigMaps().Informer(),
			dynamic.ForResource(resource).Informer(),
			metadata.ForResource(resource).Informer(),
		}
		records := []*seen{}
		for _, informer := range all {
			record := &seen{}
			records = append(records, record)
			if _, err := informer.AddEventHandler(record.handler()); err != nil {
				return nil, err
			}
			go informer.Run(ctx.Done())
		}
		synced := []cache.InformerSynced{}
		for _, informer := range all {
			synced = append(synced, informer.HasSynced)
		}
		cache.WaitForCacheSync(ctx.Done(), synced...)
		change := []byte(`{"data":{"n":"1"}}`)
		if _, err := maps.Patch(s.ctx, "informed-1", types.MergePatchType, change, metav1.PatchOptions{}); err != nil {
			return nil, err
		}
		if err := maps.Delete(s.ctx, "informed-2", metav1.DeleteOptions{}); err != nil {
			return nil, err
		}
		lines := []string{}
		for _, record := range records {
			s.eventually(func() bool { return record.count() >= 5 })
			sort.Strings(record.lines)
			lines = append(lines, strings.Join(record.lines, ", "))
		}
		return strings.Join(lines, "\n"), nil
	})
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "solo"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.test/app:1"}}},
	}
}

func (s *session) playWorkloads() {
	pods := s.typed.CoreV1().Pods(namespace)
	s.step("pod", func() (any, error) { return pods.Create(s.ctx, pod("solo"), metav1.CreateOptions{}) })
	s.step("bind", func() (any, error) {
		binding := &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: "solo"},
			Target:     corev1.ObjectReference{Kind: "Node", Name: "none"},
		}
		return "", pods.Bind(s.ctx, binding, metav1.CreateOptions{})
	})
	s.step("status", func() (any, error) {
		found, err := pods.Get(s.ctx, "solo", metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		found.Status.Phase = corev1.PodRunning
		ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
		found.Status.Conditions = append(found.Status.Conditions, ready)
		return pods.UpdateStatus(s.ctx, found, metav1.UpdateOptions{})
	})
	s.step("ephemeral container", func() (any, error) {
		found, err := pods.Get(s.ctx, "solo", metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		common := corev1.EphemeralContainerCommon{Name: "debug", Image: "example.test/app:1"}
		found.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: common}}
		return pods.UpdateEphemeralContainers(s.ctx, "solo", found, metav1.UpdateOptions{})
	})
	s.step("budget", func() (any, error) {
		budget := &policy.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "solo"},
			Spec: policy.PodDisruptionBudgetSpec{
				MinAvailable: ptr.To(intstr.FromInt32(1)),
				Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "solo"}},
			},
		}
		return s.typed.PolicyV1().PodDisruptionBudgets(namespace).Create(s.ctx, budget, metav1.CreateOptions{})
	})
	eviction := &policy.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "solo", Namespace: namespace}}
	s.step("eviction", func() (any, error) { return "", pods.EvictV1(s.ctx, eviction) })
	s.step("logs", func() (any, error) {
		return pods.GetLogs("solo", &corev1.PodLogOptions{}).Do(s.ctx).Raw()
	})
	s.step("exec over WebSocket", func() (any, error) { return "", s.exec(true) })
	s.step("exec over SPDY", func() (any, error) { return "", s.exec(false) })
	s.step("port forward", func() (any, error) { return "", s.forward() })
	s.step("token", func() (any, error) {
		request := &authentication.TokenRequest{Spec: authentication.TokenRequestSpec{
			ExpirationSeconds: ptr.To[int64](600),
			BoundObjectRef:    &authentication.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: "none"},
		}}
		return s.typed.CoreV1().ServiceAccounts(namespace).CreateToken(s.ctx, "default", request, metav1.CreateOptions{})
	})
}

func (s *session) execURL(subresource string) *rest.Request {
	return s.typed.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).
		Name("solo").SubResource(subresource)
}

func (s *session) exec(overWebSocket bool) error {
	options := &corev1.PodExecOptions{Command: []string{"true"}, Stdout: true, Stderr: true}
	address := s.execURL("exec").VersionedParams(options, scheme.ParameterCodec).URL()
	executor, err := remotecommand.NewSPDYExecutor(s.config, http.MethodPost, address)
	if overWebSocket {
		executor, err = remotecommand.NewWebSocketExecutor(s.config, http.MethodGet, address.String())
	}
	if err != nil {
		return err
	}
	var output bytes.Buffer
	return executor.StreamWithContext(s.ctx, remotecommand.StreamOptions{Stdout: &output, Stderr: &output})
}

func (s *session) forward() error {
	transport, upgrader, err := spdy.RoundTripperFor(s.config)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: transport}
	dialer := spdy.NewDialer(upgrader, client, http.MethodPost, s.execURL("portforward").URL())
	var output bytes.Buffer
	forwarder, err := portforward.New(dialer, []string{"0:80"}, make(chan struct{}), make(chan struct{}), &output, &output)
	if err != nil {
		return err
	}
	return forwarder.ForwardPorts()
}

// playElection has two candidates contend for a Lease; the first gives it up, and the second leads.
func (s *session) playElection() {
	s.step("leader election", func() (any, error) {
		var lock sync.Mutex
		lines := []string{}
		note := func(line string) {
			lock.Lock()
			defer lock.Unlock()
			lines = append(lines, line)
		}
		candidate := func(ctx context.Context, name string) {
			lease := &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Name: "leader", Namespace: namespace},
				Client:     s.typed.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: name},
			}
			leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
				Lock:            lease,
				LeaseDuration:   4 * time.Second,
				RenewDeadline:   3 * time.Second,
				RetryPeriod:     200 * time.Millisecond,
				ReleaseOnCancel: true,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(context.Context) { note(name + " leads") },
					OnStoppedLeading: func() { note(name + " stops") },
				},
			})
		}
		has := func(line string) func() bool {
			return func() bool {
				lock.Lock()
				defer lock.Unlock()
				return strings.Contains(strings.Join(lines, "\n"), line)
			}
		}
		first, endFirst := context.WithCancel(s.ctx)
		second, endSecond := context.WithCancel(s.ctx)
		go candidate(first, "one")
		s.eventually(has("one leads"))
		go candidate(second, "two")
		time.Sleep(time.Second)
		endFirst()
		s.eventually(has("two leads"))
		endSecond()
		s.eventually(has("two stops"))
		found, err := s.typed.CoordinationV1().Leases(namespace).Get(s.ctx, "leader", metav1.GetOptions{})
		note(fmt.Sprint("transitions ", ptr.Deref(found.Spec.LeaseTransitions, -1)))
		return strings.Join(lines, "\n"), err
	})
	s.step("recorded events", s.recorded)
}

// recorded sends events with both recorders, the second one twice, and lists what is stored.
func (s *session) recorded() (any, error) {
	old := record.NewBroadcaster()
	old.StartRecordingToSink(eventSink(s.typed))
	series := eventsclient.NewBroadcaster(&eventsclient.EventSinkImpl{Interface: s.typed.EventsV1()})
	stop := make(chan struct{})
	defer close(stop)
	series.StartRecordingToSink(stop)
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "about", Namespace: namespace}
	one := old.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "peers"})
	two := series.NewRecorder(scheme.Scheme, "peers.test/events")
	for range 2 {
		one.Event(about, corev1.EventTypeNormal, "Old", "an old event")
		two.Eventf(about, runtime.Object(nil), corev1.EventTypeWarning, "New", "Testing", "a new event")
		time.Sleep(300 * time.Millisecond)
	}
	list := func() []string {
		found, err := s.typed.CoreV1().Events(namespace).List(s.ctx, metav1.ListOptions{
			FieldSelector: "involvedObject.name=about",
		})
		if err != nil {
			return []string{err.Error()}
		}
		lines := []string{}
		for _, event := range found.Items {
			lines = append(lines, fmt.Sprintf("%s %s count %d series %v from %s%s action %q", event.Type,
				event.Reason, event.Count, event.Series != nil, event.Source.Component,
				event.ReportingController, event.Action))
		}
		sort.Strings(lines)
		return lines
	}
	s.eventually(func() bool {
		all := strings.Join(list(), "\n")
		return strings.Contains(all, "count 2") && strings.Contains(all, "series true")
	})
	return list(), nil
}

func eventSink(typed kubernetes.Interface) record.EventSink {
	return &typedEventSink{typed: typed}
}

type typedEventSink struct{ typed kubernetes.Interface }

func (e *typedEventSink) Create(event *corev1.Event) (*corev1.Event, error) {
	return e.typed.CoreV1().Events(namespace).CreateWithEventNamespace(event)
}

func (e *typedEventSink) Update(event *corev1.Event) (*corev1.Event, error) {
	return e.typed.CoreV1().Events(namespace).UpdateWithEventNamespace(event)
}

func (e *typedEventSink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	return e.typed.CoreV1().Events(namespace).PatchWithEventNamespace(event, data)
}

func (s *session) playAccess() {
	s.step("self review", func() (any, error) {
		review := &authentication.SelfSubjectReview{}
		return s.typed.AuthenticationV1().SelfSubjectReviews().Create(s.ctx, review, metav1.CreateOptions{})
	})
	s.step("access review with selectors", func() (any, error) {
		requirement := metav1.FieldSelectorRequirement{Key: "spec.nodeName", Operator: "In", Values: []string{"a"}}
		attributes := &authorization.ResourceAttributes{
			Verb: "list", Resource: "pods",
			FieldSelector: &authorization.FieldSelectorAttributes{
				Requirements: []metav1.FieldSelectorRequirement{requirement},
			},
		}
		review := &authorization.SubjectAccessReview{
			Spec: authorization.SubjectAccessReviewSpec{User: "jane", ResourceAttributes: attributes},
		}
		return s.typed.AuthorizationV1().SubjectAccessReviews().Create(s.ctx, review, metav1.CreateOptions{})
	})
	impersonating := rest.CopyConfig(s.config)
	impersonating.Impersonate = rest.ImpersonationConfig{UserName: "jane", Groups: []string{"readers"}}
	stranger := kubernetes.NewForConfigOrDie(impersonating)
	s.step("forbidden", func() (any, error) {
		return stranger.CoreV1().Secrets(namespace).List(s.ctx, metav1.ListOptions{})
	})
	s.step("anonymous", func() (any, error) {
		anonymous := kubernetes.NewForConfigOrDie(rest.AnonymousClientConfig(s.config))
		return anonymous.CoreV1().Nodes().List(s.ctx, metav1.ListOptions{})
	})
	s.step("deprecated version", func() (any, error) {
		found, err := s.typed.FlowcontrolV1beta3().FlowSchemas().Get(s.ctx, "exempt", metav1.GetOptions{})
		return found.Spec, err
	})
	s.step("watch-list by hand", func() (any, error) {
		w, err := s.typed.CoreV1().ConfigMaps(namespace).Watch(s.ctx, metav1.ListOptions{
			SendInitialEvents:    ptr.To(true),
			AllowWatchBookmarks:  true,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			FieldSelector:        "metadata.name=informed-0",
		})
		if err != nil {
			return nil, err
		}
		return events(w, 2), nil
	})
}
