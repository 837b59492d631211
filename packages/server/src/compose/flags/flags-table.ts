import { admissionFlags } from '../admission/admission-flags.ts';
import { aggregationFlags } from '../aggregation/aggregation-flags.ts';
import { auditFlags } from '../audit/audit-flags.ts';
import { identityFlags } from '../authentication/identity-flags.ts';
import { oidcFlags } from '../authentication/oidc-flags.ts';
import { tokenFlags } from '../authentication/token-flags.ts';
import { webhookTokenFlags } from '../authentication/webhook-token-flags.ts';
import { authorizationFlags } from '../authorization/authorization-flags.ts';
import { leaderElectionFlags } from '../controllers/leader-election-flags.ts';
import { metricFlags } from '../process/metric-flags.ts';
import { servingFlags } from '../serving/serving-flags.ts';
import { trafficFlags } from '../serving/traffic-flags.ts';
import { encryptionFlags } from '../storage/encryption-flags.ts';
import { etcdFlags } from '../storage/etcd-flags.ts';
import { clusterFlags } from './cluster-flags.ts';
import { emulationChoices } from './emulation.ts';
import { describeGates } from './feature-gates.ts';
import type { FlagTable } from './flags.ts';
import { inheritedFlags } from './inherited-flags.ts';
import { obsoleteFlags } from './obsolete-flags.ts';
import { runtimeConfigChoices } from './runtime-config.ts';

/**
 * Every flag of `wheelhouse serve`, with upstream's name and default where upstream has it. A flag
 * stands here only once the server acts on it: one accepted and ignored would mislead. One whose
 * effect has no counterpart in this process (`only`) can be given the value that says what is done
 * anyway, so that upstream's manifests start; any other stops the start and says why.
 */
export const serverFlags = {
  'bind-address': {
    group: 'Secure serving',
    type: 'string',
    default: '0.0.0.0',
    help: 'The IP address to listen on for --secure-port. The unspecified address (0.0.0.0 or ::) takes all interfaces.',
  },
  'secure-port': {
    group: 'Secure serving',
    type: 'int',
    default: '6443',
    help: 'The port to serve HTTPS on, with authentication and authorization. 0 takes any free port.',
  },
  'cert-dir': {
    group: 'Secure serving',
    type: 'string',
    default: '',
    help: 'Directory with the serving certificate apiserver.crt and its key apiserver.key, used when --tls-cert-file and --tls-private-key-file are not given. Where it holds neither, the server makes a pair and a CA there; it never changes files that it did not make. Within --data-dir when empty.',
  },
  'tls-cert-file': {
    group: 'Secure serving',
    type: 'string',
    file: 'certificates',
    default: '',
    help: 'File with the x509 certificate for HTTPS, followed by its CA chain if any.',
  },
  'tls-private-key-file': {
    group: 'Secure serving',
    type: 'string',
    file: 'private key',
    default: '',
    help: 'File with the private key of --tls-cert-file.',
  },
  ...servingFlags,
  'http2-max-streams-per-connection': {
    group: 'Secure serving',
    type: 'int',
    default: '0',
    help: 'Limit on concurrent HTTP/2 streams of one connection. 0 leaves it to the server (1000).',
  },
  'insecure-port': {
    group: 'Secure serving',
    type: 'int',
    default: '0',
    only: 'there is no port without authentication; --plain-http-port serves plain HTTP',
    hidden: true,
    help: 'The port without TLS and authentication that older releases had. 0 is off.',
  },
  'plain-http-port': {
    group: 'Secure serving',
    type: 'int',
    default: '-1',
    stage: 'own',
    help: 'Serve plain HTTP on this port of 127.0.0.1 instead of HTTPS, with the same authentication and authorization. 0 takes any free port, -1 is off.',
  },
  'advertise-address': {
    group: 'Generic',
    type: 'string',
    default: '',
    help: 'The IP address at which others reach the server; a name of the serving certificate. The bind address when empty.',
  },
  'request-timeout': {
    group: 'Generic',
    type: 'duration',
    default: '1m0s',
    help: 'How long a request may take that is no watch and no other stream; a client may ask for less by ?timeout. It is then answered 504, and nothing is stored for it any more.',
  },
  'min-request-timeout': {
    group: 'Generic',
    type: 'int',
    default: '1800',
    help: 'Seconds a watch is kept open at least, unless it asks for less; a random value above it spreads load.',
  },
  'max-requests-inflight': {
    group: 'Generic',
    type: 'int',
    default: '400',
    help: "The server's seats are this and --max-mutating-requests-inflight together. Without priority and fairness: limit on non-mutating requests in flight, more are answered 429; 0 is no limit.",
  },
  'max-mutating-requests-inflight': {
    group: 'Generic',
    type: 'int',
    default: '200',
    help: "The server's seats are this and --max-requests-inflight together. Without priority and fairness: limit on mutating requests in flight, more are answered 429; 0 is no limit.",
  },
  'enable-priority-and-fairness': {
    group: 'Generic',
    type: 'bool',
    default: 'true',
    help: 'Let FlowSchemas and PriorityLevelConfigurations say who runs, who waits and who is answered 429 when not all requests can run. Otherwise reads and writes are counted, and that is all.',
  },
  'max-request-body-bytes': {
    group: 'Generic',
    type: 'int',
    default: '3145728',
    stage: 'own',
    help: 'Limit on the size of a request body; a larger one is answered 413.',
  },
  'memory-budget-mb': {
    group: 'Generic',
    type: 'int',
    default: '0',
    stage: 'own',
    help: 'Limit in MiB on what clients make the server hold: connections, requests in flight, watches, selectors and answers that are not read. Near it, clients that hold more than their share are answered 429; above it, the heaviest are cut off. 0 derives it from the limits of the heap and of the host.',
  },
  'max-connections': {
    group: 'Generic',
    type: 'int',
    default: '0',
    stage: 'own',
    help: 'Limit on open connections. At it, a new one takes the place of an idle one. 0 derives it from the limit on open files, of which some are kept for the store.',
  },
  'livez-grace-period': {
    group: 'Generic',
    type: 'duration',
    default: '0s',
    help: 'How long the start may take before unfinished parts of it fail /livez.',
  },
  'shutdown-delay-duration': {
    group: 'Generic',
    type: 'duration',
    default: '0s',
    help: 'How long to go on serving after a signal to stop, /readyz failing meanwhile, so that load balancers notice.',
  },
  ...trafficFlags,
  'feature-gates': {
    group: 'Generic',
    type: 'list',
    default: '',
    help: 'Pairs Gate=true or Gate=false that switch features. Known are:',
    choices: describeGates(),
  },
  'runtime-config': {
    group: 'Generic',
    type: 'map',
    default: '',
    help: 'Pairs key=true or key=false that switch built-in APIs on and off; a key alone is true. Alpha versions, and beta versions newer than release 1.22, are off unless they are switched on. The keys:',
    choices: runtimeConfigChoices,
  },
  'emulated-version': {
    group: 'Generic',
    type: 'list',
    default: '',
    help: 'The release whose APIs are served, as 1.21 or kube=1.21: with the versions removed since, and without those that came later. Older releases than upstream can emulate are there for their manifests and clients. This one when empty:',
    choices: emulationChoices,
  },
  ...metricFlags,
  'show-hidden-metrics-for-version': {
    group: 'Generic',
    type: 'string',
    default: '',
    help: 'The previous release, as 1.31: shows the metrics that have been hidden since.',
  },
  dialect: {
    group: 'Generic',
    type: 'string',
    default: 'svc',
    stage: 'own',
    help: "The vendor label of groups, labels and system namespaces: svc, or kubernetes for unmodified clients of upstream's API.",
  },
  'web-console': {
    group: 'Generic',
    type: 'bool',
    default: 'true',
    stage: 'own',
    help: "Serve a web console at /console/: files without data, which anybody may load; what it shows it asks of the API with its user's own credential.",
  },
  'service-cluster-ip-range': {
    group: 'Generic',
    type: 'list',
    repeated: 'last',
    default: '10.0.0.0/24',
    help: 'CIDR block that Services are given addresses from; two, of different families, for two addresses each.',
  },
  'service-node-port-range': {
    group: 'Generic',
    type: 'string',
    default: '30000-32767',
    help: 'Ports of nodes that Services are given, both ends included. A change leaves the ports of older Services as they are.',
  },
  'data-dir': {
    group: 'Storage',
    type: 'string',
    default: './wheelhouse-data',
    stage: 'own',
    help: 'Directory of the embedded store, the self-made certificates and keys. Made when absent. With --etcd-servers it must not be one that has a store, and is within --cert-dir when only that is given.',
  },
  'storage-backend': {
    group: 'Storage',
    type: 'string',
    default: 'embedded',
    stage: 'own',
    help: 'Where objects are kept: embedded (on disk, in --data-dir), memory (gone at exit) or etcd3. The last one when --etcd-servers is given.',
  },
  'quota-backend-bytes': {
    group: 'Storage',
    type: 'int',
    default: '0',
    stage: 'own',
    help: 'Bytes of objects and their history above which the embedded store takes no more: writes that do not make room are refused with 503 and /readyz fails until there is room again. 0 is no quota; the store always keeps a twentieth of its disk free, 64 MiB at most.',
  },
  'etcd-compaction-interval': {
    group: 'Storage',
    type: 'duration',
    default: '5m0s',
    help: 'How much history is kept for watches and consistent lists. 0 keeps all.',
  },
  'event-ttl': {
    group: 'Storage',
    type: 'duration',
    default: '1h0m0s',
    help: 'How long Events are kept after their last write. 0 keeps them.',
  },
  ...etcdFlags,
  ...leaderElectionFlags,
  ...encryptionFlags,
  ...identityFlags,
  ...tokenFlags,
  ...admissionFlags,
  ...oidcFlags,
  ...webhookTokenFlags,
  'anonymous-auth': {
    group: 'Authentication',
    type: 'bool',
    default: 'true',
    help: 'Let requests without a credential in as system:anonymous, in group system:unauthenticated. Never with --authorization-mode=AlwaysAllow.',
  },
  'client-ca-file': {
    group: 'Authentication',
    type: 'string',
    file: 'certificates',
    default: '',
    help: 'File of CAs whose client certificates authenticate: the common name is the user, the organizations are the groups.',
  },
  'token-auth-file': {
    group: 'Authentication',
    type: 'string',
    file: 'any',
    default: '',
    help: 'CSV file of bearer tokens: token,user,uid,"group1,group2".',
  },
  ...authorizationFlags,
  ...aggregationFlags,
  ...auditFlags,
  ...clusterFlags,
  'allow-privileged': {
    group: 'Misc',
    type: 'bool',
    default: 'false',
    help: 'Let pods have privileged containers, and on Windows processes of the host.',
  },
  'admin-kubeconfig': {
    group: 'Misc',
    type: 'string',
    default: '',
    stage: 'own',
    help: 'Where to write a kubeconfig with a credential of group system:masters. Within --data-dir when empty.',
  },
  ...inheritedFlags,
  ...obsoleteFlags,
  v: {
    group: 'Logs',
    type: 'int',
    default: '0',
    shorthand: 'v',
    help: 'Verbosity of the log.',
  },
} as const satisfies FlagTable;
