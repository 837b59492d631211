/** An object as kube-apiserver 1.32 stored it in etcd, and as it served it. */
export interface ReferenceValue {
  /** Below `/registry/`. */
  readonly key: string;
  readonly path: string;
  /** The stored bytes, in hexadecimal. */
  readonly stored: string;
  /** The JSON of a GET, without the resourceVersion. */
  readonly served: string;
}

const hex = (lines: string) => lines.replaceAll(/\s/g, '');
const text = (lines: string) => lines.replaceAll(/\n */g, '');

export const referenceValues: readonly ReferenceValue[] = [
  {
    key: 'configmaps/default/c',
    path: '/api/v1/namespaces/default/configmaps/c',
    stored: hex(`
      6b3873000a0f0a0276311209436f6e6669674d617012680a540a016312001a0764656661756c7422002a24663835
      30386539302d663064392d343062382d626439662d38383866363330323965396432003800420808f0e28ed80610
      005a060a01611201315a060a016212013212060a016b1201761a080a017812030001021a002200
    `),
    served: text(`
      {"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c","namespace":"default",
      "uid":"f8508e90-f0d9-40b8-bd9f-888f63029e9d","creationTimestamp":"2026-11-23T03:22:24Z",
      "labels":{"a":"1","b":"2"}},"data":{"k":"v"},"binaryData":{"x":"AAEC"}}
    `),
  },
  {
    key: 'secrets/default/s',
    path: '/api/v1/namespaces/default/secrets/s',
    stored: hex(`
      6b3873000a0c0a027631120653656372657412560a440a017312001a0764656661756c7422002a24363733303932
      31642d343261342d346563662d613062332d33643965626363316631326632003800420808f1e28ed80610001206
      0a016b1201761a064f70617175651a002200
    `),
    served: text(`
      {"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","namespace":"default",
      "uid":"6730921d-42a4-4ecf-a0b3-3d9ebcc1f12f","creationTimestamp":"2026-11-23T03:22:25Z"},
      "data":{"k":"dg=="},"type":"Opaque"}
    `),
  },
  {
    key: 'services/specs/default/web',
    path: '/api/v1/namespaces/default/services/web',
    stored: hex(`
      6b3873000a0d0a02763112075365727669636512c4010a460a0377656212001a0764656661756c7422002a243462
      6165323035342d633332342d346664642d613562622d65393932383066383462386332003800420808f1e28ed806
      100012760a170a0012035443501850220a080110001a04687474702800120a0a0361707012037765621a0931302e
      302e302e33372209436c757374657249503a044e6f6e65420052005a00600068008a010b53696e676c6553746163
      6b92010931302e302e302e33379a010449507634b20107436c75737465721a020a001a002200
    `),
    served: text(`
      {"kind":"Service","apiVersion":"v1","metadata":{"name":"web","namespace":"default",
      "uid":"4bae2054-c324-4fdd-a5bb-e99280f84b8c","creationTimestamp":"2026-11-23T03:22:25Z"},
      "spec":{"ports":[{"protocol":"TCP","port":80,"targetPort":"http"}],"selector":{"app":"web"},
      "clusterIP":"10.0.0.37","clusterIPs":["10.0.0.37"],"type":"ClusterIP",
      "sessionAffinity":"None","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack",
      "internalTrafficPolicy":"Cluster"},"status":{"loadBalancer":{}}}
    `),
  },
  {
    key: 'leases/default/l',
    path: '/apis/coordination.k8s.io/v1/namespaces/default/leases/l',
    stored: hex(`
      6b3873000a1f0a16636f6f7264696e6174696f6e2e6b38732e696f2f763112054c65617365125a0a440a016c1200
      1a0764656661756c7422002a2431303863336136332d353530662d343064342d613034622d666236343037663537
      65343032003800420808f1e28ed806100012120a026d65220c08a5facdac061088eadcc3021a002200
    `),
    served: text(`
      {"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"l",
      "namespace":"default","uid":"108c3a63-550f-40d4-a04b-fb6407f57e40",
      "creationTimestamp":"2026-11-23T03:22:25Z"},"spec":{"holderIdentity":"me",
      "renewTime":"2024-01-02T03:04:05.678901Z"}}
    `),
  },
  {
    key: 'horizontalpodautoscalers/default/h',
    path: '/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers/h',
    stored: hex(`
      6b3873000a290a0e6175746f7363616c696e672f76321217486f72697a6f6e74616c506f644175746f7363616c65
      721290010a440a016812001a0764656661756c7422002a2431313638323136652d323736302d343733622d623731
      652d61326433616464393866616232003800420808f1e28ed806100012420a180a0a4465706c6f796d656e741201
      641a07617070732f76311001180322220a085265736f7572636522160a03637075120f0a0b5574696c697a617469
      6f6e20321a04180020001a002200
    `),
    served: text(`
      {"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v1","metadata":{"name":"h",
      "namespace":"default","uid":"1168216e-2760-473b-b71e-a2d3add98fab",
      "creationTimestamp":"2026-11-23T03:22:25Z"},"spec":{"scaleTargetRef":{"kind":"Deployment",
      "name":"d","apiVersion":"apps/v1"},"minReplicas":1,"maxReplicas":3,
      "targetCPUUtilizationPercentage":50},"status":{"currentReplicas":0,"desiredReplicas":0}}
    `),
  },
  {
    key: 'poddisruptionbudgets/default/p',
    path: '/apis/policy/v1/namespaces/default/poddisruptionbudgets/p',
    stored: hex(`
      6b3873000a200a09706f6c6963792f76311213506f6444697372757074696f6e42756467657412690a440a017012
      001a0764656661756c7422002a2433643437313664612d333165622d343630372d613435392d3162333463313364
      6131323132003801420808f1e28ed806100012150a09080110001a0335302512080a060a01611201621a0a080018
      002000280030001a002200
    `),
    served: text(`
      {"kind":"PodDisruptionBudget","apiVersion":"policy/v1","metadata":{"name":"p",
      "namespace":"default","uid":"3d4716da-31eb-4607-a459-1b34c13da121","generation":1,
      "creationTimestamp":"2026-11-23T03:22:25Z"},"spec":{"minAvailable":"50%",
      "selector":{"matchLabels":{"a":"b"}}},"status":{"disruptionsAllowed":0,"currentHealthy":0,
      "desiredHealthy":0,"expectedPods":0}}
    `),
  },
  {
    key: 'events/default/e',
    path: '/apis/events.k8s.io/v1/namespaces/default/events/e',
    stored: hex(`
      6b3873000a0b0a02763112054576656e741295010a440a016512001a0764656661756c7422002a24373962643535
      35372d653432372d343239612d393136662d33333630353338353339626432003800420808f1e28ed80610001219
      0a03506f64120764656661756c741a017022002a0032003a001a015222002a040a00120032003a0040004a064e6f
      726d616c520c08a5facdac061088eadcc3026201417205782e792f7a7a01691a002200
    `),
    served: text(`
      {"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{"name":"e",
      "namespace":"default","uid":"79bd5557-e427-429a-916f-3360538539bd",
      "creationTimestamp":"2026-11-23T03:22:25Z"},"eventTime":"2024-01-02T03:04:05.678901Z",
      "reportingController":"x.y/z","reportingInstance":"i","action":"A","reason":"R",
      "regarding":{"kind":"Pod","namespace":"default","name":"p"},"type":"Normal",
      "deprecatedSource":{},"deprecatedFirstTimestamp":null,"deprecatedLastTimestamp":null}
    `),
  },
];
