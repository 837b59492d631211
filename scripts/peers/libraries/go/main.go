// A session of client-go: prints what every step answers, for comparison.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

const namespace = "peers-go"

type session struct {
	ctx      context.Context
	config   *rest.Config
	typed    kubernetes.Interface
	dynamic  dynamic.Interface
	metadata metadata.Interface
	mapper   *restmapper.DeferredDiscoveryRESTMapper
	warnings *warnings
}

type warnings struct {
	lock  sync.Mutex
	lines []string
}

func (w *warnings) HandleWarningHeader(code int, agent string, text string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.lines = append(w.lines, fmt.Sprintf("%d %s", code, text))
}

func (w *warnings) taken() []string {
	w.lock.Lock()
	defer w.lock.Unlock()
	lines := w.lines
	w.lines = nil
	return lines
}

// text prints objects as JSON with sorted members, which leaves out what only one encoding has.
func text(value any) string {
	if line, isText := value.(string); isText {
		return line
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	var plain any
	if err := json.Unmarshal(encoded, &plain); err != nil {
		return string(encoded)
	}
	indented, _ := json.MarshalIndent(plain, "", " ")
	return string(indented)
}

var kindsOfErrors = []struct {
	name string
	is   func(error) bool
}{
	{"NotFound", apierrors.IsNotFound},
	{"AlreadyExists", apierrors.IsAlreadyExists},
	{"Conflict", apierrors.IsConflict},
	{"Invalid", apierrors.IsInvalid},
	{"Forbidden", apierrors.IsForbidden},
	{"Unauthorized", apierrors.IsUnauthorized},
	{"TooManyRequests", apierrors.IsTooManyRequests},
	{"Gone", apierrors.IsGone},
	{"Expired", apierrors.IsResourceExpired},
	{"BadRequest", apierrors.IsBadRequest},
	{"Timeout", apierrors.IsTimeout},
	{"NotAcceptable", apierrors.IsNotAcceptable},
	{"UnsupportedMediaType", apierrors.IsUnsupportedMediaType},
	{"MethodNotSupported", apierrors.IsMethodNotSupported},
	{"RequestEntityTooLarge", apierrors.IsRequestEntityTooLargeError},
}

func errorText(err error) string {
	var kinds []string
	for _, kind := range kindsOfErrors {
		if kind.is(err) {
			kinds = append(kinds, kind.name)
		}
	}
	line := fmt.Sprintf("error %v %T: %v", kinds, err, err)
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		line += "\n" + text(status.Status())
	}
	return line
}

func (s *session) step(title string, action func() (any, error)) {
	fmt.Printf("## %s\n", title)
	value, err := action()
	if err != nil {
		fmt.Println(errorText(err))
	} else {
		fmt.Println(text(value))
	}
	for _, line := range s.warnings.taken() {
		fmt.Println("warning:", line)
	}
}

// eventually waits until a check succeeds, at most twenty seconds.
func (s *session) eventually(check func() bool) bool {
	err := wait.PollUntilContextTimeout(s.ctx, 50*time.Millisecond, 20*time.Second, true,
		func(context.Context) (bool, error) { return check(), nil })
	return err == nil
}

func newSession(config *rest.Config, contentType string) *session {
	config = rest.CopyConfig(config)
	if contentType != "" {
		config.ContentType = contentType
		config.AcceptContentTypes = contentType + ",application/json"
	}
	handler := &warnings{}
	config.WarningHandler = handler
	config.QPS, config.Burst = 500, 1000
	mapped := memory.NewMemCacheClient(discovery.NewDiscoveryClientForConfigOrDie(config))
	return &session{
		ctx:      context.Background(),
		config:   config,
		typed:    kubernetes.NewForConfigOrDie(config),
		dynamic:  dynamic.NewForConfigOrDie(config),
		metadata: metadata.NewForConfigOrDie(config),
		mapper:   restmapper.NewDeferredDiscoveryRESTMapper(mapped),
		warnings: handler,
	}
}

func (s *session) playDiscovery() {
	client := s.typed.Discovery()
	s.step("groups and resources", func() (any, error) {
		_, lists, err := client.ServerGroupsAndResources()
		lines := []string{}
		for _, list := range lists {
			for _, one := range list.APIResources {
				lines = append(lines, fmt.Sprintf("%s %s %s %v %v %v %v", list.GroupVersion, one.Name,
					one.Kind, one.Namespaced, one.Verbs, one.ShortNames, one.Categories))
			}
		}
		sort.Strings(lines)
		return strings.Join(lines, "\n"), err
	})
	s.step("preferred resources", func() (any, error) {
		lists, err := client.ServerPreferredResources()
		lines := []string{}
		for _, list := range lists {
			lines = append(lines, fmt.Sprintf("%s %d", list.GroupVersion, len(list.APIResources)))
		}
		sort.Strings(lines)
		return strings.Join(lines, "\n"), err
	})
	s.step("OpenAPI v3", func() (any, error) {
		paths, err := client.OpenAPIV3().Paths()
		names := []string{}
		for path := range paths {
			names = append(names, path)
		}
		sort.Strings(names)
		return strings.Join(names, "\n"), err
	})
	s.step("OpenAPI v2 in protobuf", func() (any, error) {
		document, err := client.OpenAPISchema()
		if err != nil {
			return nil, err
		}
		return fmt.Sprint(document.Swagger, len(document.Paths.Path) > 100), nil
	})
	s.step("every kind, listed as objects and as metadata", s.listEverything)
}

func (s *session) listEverything() (any, error) {
	lists, err := s.typed.Discovery().ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	resources := discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, lists)
	all, err := discovery.GroupVersionResources(resources)
	if err != nil {
		return nil, err
	}
	lines := []string{}
	for one := range all {
		line := fmt.Sprintf("%s %s", one.GroupVersion(), one.Resource)
		list, err := s.dynamic.Resource(one).List(s.ctx, metav1.ListOptions{})
		if err != nil {
			line += " " + err.Error()
		} else {
			line += fmt.Sprintf(" %s %s", list.GetAPIVersion(), list.GetKind())
		}
		partial, err := s.metadata.Resource(one).List(s.ctx, metav1.ListOptions{})
		if err != nil {
			line += " " + err.Error()
		} else {
			line += fmt.Sprintf(" %s %v", partial.Kind, partial.ResourceVersion != "")
		}
		lines = append(lines, line)
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n"), nil
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "--version" {
		fmt.Println(os.Getenv("CLIENT_GO_VERSION"))
		return
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	fail(err)
	s := newSession(config, "")
	s.step("namespace", func() (any, error) {
		made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		created, err := s.typed.CoreV1().Namespaces().Create(s.ctx, made, metav1.CreateOptions{})
		return created.Name, err
	})
	s.playDiscovery()
	for _, encoding := range []string{"json", "vnd.kubernetes.protobuf", "cbor"} {
		playObjects(newSession(config, "application/"+encoding), strings.TrimPrefix(encoding, "vnd."))
	}
	s.playApply()
	s.playCustom()
	s.playInformers()
	s.playWorkloads()
	s.playElection()
	s.playAccess()
	s.step("delete namespace", func() (any, error) {
		return "", s.typed.CoreV1().Namespaces().Delete(s.ctx, namespace, metav1.DeleteOptions{})
	})
}
