// The meaning of each field of a configuration file. Fields and types come from the types by which
// the server reads the files; scripts/docs/configuration.mjs fails for a field that is missing in
// either.

const key = {
  keys: 'Keys, of which the first encrypts and all decrypt.',
  'keys[].name': 'The name of the key, which is stored with each value.',
  'keys[].secret': 'The key in base64: 16, 24, or 32 bytes; 32 for secretbox.',
};
const under = (prefix, fields) =>
  Object.fromEntries(Object.entries(fields).map(([name, text]) => [`${prefix}.${name}`, text]));

/** The meaning of each field by kind of file and by path; `[]` stands for the items of a list. */
export const fields = {
  AdmissionConfiguration: {
    plugins: 'One entry for each plugin to configure; the first of a name counts.',
    'plugins[].name': 'The name of the plugin, as `--enable-admission-plugins` has it.',
    'plugins[].path': 'A file with the configuration, relative to this one.',
    'plugins[].configuration': 'The configuration itself, in place of `path`.',
  },
  PodSecurityConfiguration: {
    defaults: 'Levels for namespaces without Pod Security labels.',
    'defaults.enforce':
      'The level that Pods must meet: `privileged`, `baseline`, or `restricted`. `privileged` when empty.',
    'defaults.enforce-version':
      'The release whose rules of the level hold: `latest`, or `v1.30`. `latest` when empty.',
    'defaults.warn': 'The level below which the writer gets a warning.',
    'defaults.warn-version': 'The release of `warn`.',
    'defaults.audit': 'The level below which the audit event has an annotation.',
    'defaults.audit-version': 'The release of `audit`.',
    exemptions: 'Requests that no level applies to.',
    'exemptions.namespaces': 'Namespaces whose Pods are exempt.',
    'exemptions.runtimeClasses': 'Runtime classes whose Pods are exempt.',
    'exemptions.usernames': 'Users whose writes are exempt.',
  },
  ResourceQuotaConfiguration: {
    limitedResources: 'Resources that may only be used where a ResourceQuota counts them.',
    'limitedResources[].apiGroup': 'The group of the resource; empty for the core group.',
    'limitedResources[].resource': 'The resource, such as `pods`.',
    'limitedResources[].matchContains':
      'Parts of quota names: amounts whose name contains one of them are limited.',
    'limitedResources[].matchScopes': 'Scopes that must match for the limit to apply.',
    'limitedResources[].matchScopes[].scopeName': 'The scope, such as `PriorityClass`.',
    'limitedResources[].matchScopes[].operator': '`In`, `NotIn`, `Exists`, or `DoesNotExist`.',
    'limitedResources[].matchScopes[].values': 'The values that the operator compares with.',
  },
  'Configuration of EventRateLimit': {
    limits: 'Limits on Events; at least one.',
    'limits[].type': 'What shares a limit: `Server`, `Namespace`, `User`, or `SourceAndObject`.',
    'limits[].qps': 'Events per second.',
    'limits[].burst': 'Events that may come at once.',
    'limits[].cacheSize': 'How many namespaces, users, or objects are counted; 4096 when 0.',
  },
  'Configuration of PodTolerationRestriction': {
    default: 'Tolerations added to Pods of namespaces that name none.',
    whitelist: 'Tolerations that Pods may have; any when empty.',
  },
  WebhookAdmissionConfiguration: {
    kubeConfigFile:
      'A kubeconfig with the credentials for webhooks, by their address; an absolute path.',
  },
  AuthenticationConfiguration: {
    jwt: 'Issuers of tokens. An empty list accepts none.',
    'jwt[].issuer': 'Who issues the tokens.',
    'jwt[].issuer.url': 'The https URL of the issuer; tokens carry it as `iss`.',
    'jwt[].issuer.discoveryURL': 'Where the issuer describes itself, if not at its URL.',
    'jwt[].issuer.certificateAuthority':
      'PEM of the authorities of the issuer; those of the host when empty.',
    'jwt[].issuer.audiences': 'Audiences, one of which a token must be for.',
    'jwt[].issuer.audienceMatchPolicy': '`MatchAny`; required with several audiences.',
    'jwt[].claimValidationRules': 'Conditions on claims; a token that breaks one is refused.',
    'jwt[].claimValidationRules[].claim': 'A claim that must be there.',
    'jwt[].claimValidationRules[].requiredValue': 'The value that the claim must have.',
    'jwt[].claimValidationRules[].expression':
      'A CEL expression over `claims`, in place of `claim`.',
    'jwt[].claimValidationRules[].message': 'The error when the expression is false.',
    'jwt[].claimMappings': 'How claims become a user.',
    'jwt[].claimMappings.username': 'The name of the user; required.',
    'jwt[].claimMappings.username.claim': 'The claim that is the name.',
    'jwt[].claimMappings.username.prefix':
      'Put before the claim; required with `claim`, and may be empty.',
    'jwt[].claimMappings.username.expression':
      'A CEL expression over `claims`, in place of `claim`.',
    'jwt[].claimMappings.groups': 'The groups of the user.',
    'jwt[].claimMappings.groups.claim': 'The claim with a group or a list of them.',
    'jwt[].claimMappings.groups.prefix': 'Put before each group; required with `claim`.',
    'jwt[].claimMappings.groups.expression': 'A CEL expression over `claims`, in place of `claim`.',
    'jwt[].claimMappings.uid': 'The uid of the user.',
    'jwt[].claimMappings.uid.claim': 'The claim that is the uid.',
    'jwt[].claimMappings.uid.expression': 'A CEL expression over `claims`, in place of `claim`.',
    'jwt[].claimMappings.extra': 'Further attributes of the user.',
    'jwt[].claimMappings.extra[].key':
      'The name of the attribute: a domain and a path, `example.com/team`.',
    'jwt[].claimMappings.extra[].valueExpression': 'A CEL expression over `claims` for its values.',
    'jwt[].userValidationRules': 'Conditions on the user that the mappings give.',
    'jwt[].userValidationRules[].expression': 'A CEL expression over `user`, which must be true.',
    'jwt[].userValidationRules[].message': 'The error when the expression is false.',
    anonymous: 'Whether requests need a credential. Cannot be combined with `--anonymous-auth`.',
    'anonymous.enabled': 'Whether requests without a credential are accepted.',
    'anonymous.conditions': 'The paths that accept them; all paths when empty.',
    'anonymous.conditions[].path': 'A path, matched exactly.',
  },
  AuthorizationConfiguration: {
    authorizers: 'The authorizers, in the order in which the server asks them; at least one.',
    'authorizers[].type': '`RBAC`, `Node`, `ABAC`, `AlwaysAllow`, `AlwaysDeny`, or `Webhook`.',
    'authorizers[].name':
      'The name of a webhook in metrics; of other types their type in lower case.',
    'authorizers[].webhook': 'Settings of a webhook.',
    'authorizers[].webhook.authorizedTTL':
      'How long an allowing answer is kept; 5 minutes for `0s`.',
    'authorizers[].webhook.unauthorizedTTL':
      'How long a denying answer is kept; 30 seconds for `0s`.',
    'authorizers[].webhook.timeout': 'How long a call may take, at most 30 seconds; required.',
    'authorizers[].webhook.subjectAccessReviewVersion':
      'The version that the webhook is sent: `v1` or `v1beta1`.',
    'authorizers[].webhook.matchConditionSubjectAccessReviewVersion':
      'The version that match conditions see: `v1`.',
    'authorizers[].webhook.failurePolicy':
      'What a failed call means: `NoOpinion` asks the next authorizer, `Deny` refuses.',
    'authorizers[].webhook.connectionInfo': 'How the webhook is reached.',
    'authorizers[].webhook.connectionInfo.type':
      '`KubeConfigFile`, or `InClusterConfig` with the credentials of a Pod.',
    'authorizers[].webhook.connectionInfo.kubeConfigFile': 'The absolute path of a kubeconfig.',
    'authorizers[].webhook.matchConditions':
      'CEL expressions, all of which must hold for the webhook to be asked.',
    'authorizers[].webhook.matchConditions[].expression':
      'An expression over `request`, the spec of the review.',
  },
  EncryptionConfiguration: {
    resources: 'Rules; the first that names a resource applies.',
    'resources[].resources':
      'Resources, such as `secrets`, `deployments.apps`, `*.apps`, `*.`, or `*.*`.',
    'resources[].providers': 'The first encrypts, all decrypt. Each entry names one provider.',
    ...Object.fromEntries(
      ['aesgcm', 'aescbc', 'secretbox'].flatMap((name) => [
        [
          `resources[].providers[].${name}`,
          { aesgcm: 'AES-GCM.', aescbc: 'AES-CBC.', secretbox: 'XSalsa20 and Poly1305.' }[name],
        ],
        ...Object.entries(under(`resources[].providers[].${name}`, key)),
      ]),
    ),
    'resources[].providers[].identity': 'No encryption. It has no members: `identity: {}`.',
    'resources[].providers[].kms': 'A plugin on a Unix socket encrypts the keys of values.',
    'resources[].providers[].kms.apiVersion': '`v2`. Without it, v1, which needs the gate KMSv1.',
    'resources[].providers[].kms.name': 'The name of the plugin, which is stored with each value.',
    'resources[].providers[].kms.cachesize':
      'Keys of v1 that are kept; 1000 when absent. Not with v2.',
    'resources[].providers[].kms.endpoint':
      'The socket: `unix:///run/kms.sock`. Node 20 pads abstract names (`unix:///@kms`) with zeros to their full length, which most programs do not: prefer a path.',
    'resources[].providers[].kms.timeout': 'How long a call may take; 3 seconds when absent.',
  },
  EgressSelectorConfiguration: {
    egressSelections: 'Destinations, and how they are reached.',
    'egressSelections[].name': '`cluster`, `controlplane`, or `etcd`; each once.',
    'egressSelections[].connection': 'How connections there are made.',
    'egressSelections[].connection.proxyProtocol':
      '`Direct`. `HTTPConnect` and `GRPC` stop the start, as connections go out directly.',
    'egressSelections[].connection.transport': 'Must be absent for `Direct`.',
    'egressSelections[].connection.transport.tcp':
      'A proxy at an address. Refused, as connections go out directly.',
    'egressSelections[].connection.transport.tcp.url': 'Its URL.',
    'egressSelections[].connection.transport.tcp.tlsConfig': 'How it is trusted.',
    'egressSelections[].connection.transport.tcp.tlsConfig.caBundle': 'File of its authorities.',
    'egressSelections[].connection.transport.tcp.tlsConfig.clientKey': "File of the client's key.",
    'egressSelections[].connection.transport.tcp.tlsConfig.clientCert':
      "File of the client's certificate.",
    'egressSelections[].connection.transport.uds':
      'A proxy at a Unix socket. Refused, as connections go out directly.',
    'egressSelections[].connection.transport.uds.udsName': 'The path of the socket.',
  },
  TracingConfiguration: {
    endpoint:
      'The collector, which takes OTLP over gRPC: `host:port`, `dns:host:port`, or `unix:///path`. `localhost:4317` when absent.',
    samplingRatePerMillion: 'How many of a million requests are traced; none when absent.',
  },
  Policy: {
    metadata: 'Ignored.',
    rules:
      'The first rule that matches decides; at least one. Requests that match none are not recorded.',
    'rules[].level':
      "`None`, `Metadata`, `Request` (with the request's body), or `RequestResponse` (with both bodies).",
    'rules[].users': 'Users; any when empty.',
    'rules[].userGroups': 'Groups; any when empty.',
    'rules[].verbs': 'Verbs; any when empty.',
    'rules[].resources': 'Resources; any when empty. Cannot be combined with `nonResourceURLs`.',
    'rules[].resources[].group': 'The group; empty for the core group.',
    'rules[].resources[].resources':
      'Resources, such as `pods`, `pods/status`, `pods/*`, `*/scale`, or `*`.',
    'rules[].resources[].resourceNames': 'Names of objects; any when empty.',
    'rules[].namespaces':
      'Namespaces; the empty string stands for objects without one. Any when empty.',
    'rules[].nonResourceURLs': 'Paths, such as `/metrics`, `/healthz*`, or `*`.',
    'rules[].omitStages':
      'Stages without events: `RequestReceived`, `ResponseStarted`, `ResponseComplete`, `Panic`.',
    'rules[].omitManagedFields': 'Whether bodies lack managed fields; as below when absent.',
    omitStages: 'Stages without events, for all rules.',
    omitManagedFields: 'Whether bodies lack managed fields.',
  },
};
