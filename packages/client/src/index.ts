/** Clients of the API: kubeconfig files, credentials, requests, discovery, and watch streams. */

export {
  type ApiClient,
  ApiError,
  type ApiRequest,
  createApiClient,
  errorOf,
  listPages,
  statusError,
  type WatchEvent,
  watchEvents,
} from './api-client.ts';
export { secureAgent } from './connections.ts';
export {
  type InClusterOptions,
  inClusterConfig,
} from './credentials/credential-files.ts';
export { processExecHost } from './credentials/exec-source.ts';
export {
  type ApiResource,
  type Discovery,
  discover,
  RestMapper,
  resourcePath,
} from './discovery.ts';
export { environmentProxy } from './environment-proxy.ts';
export {
  bodyErrorText,
  ConnectionError,
  createHttpClient,
  type HttpClient,
  LostResponseError,
  type StreamingClient,
} from './http-client.ts';
export { expireIdle, retireAgent } from './idle-connections.ts';
export { type ClientConfig, CredentialError } from './kubeconfig/client-config.ts';
export {
  type Kubeconfig,
  KubeconfigError,
  kubeconfigFiles,
  kubeconfigShape,
  type LocatedEntry,
  loadKubeconfig,
  readKubeconfigFile,
  type Shape,
  textMember,
} from './kubeconfig/kubeconfig.ts';
export {
  type KubeconfigOverrides,
  type ResolvedContext,
  resolveContext,
} from './kubeconfig/kubeconfig-context.ts';
export { loadYaml } from './lazy.ts';
export {
  dialTimeoutCode,
  goNetworkError,
  goResponseError,
  handshakeTimeoutCode,
} from './network-wording.ts';
export { connectVerified, VerifyingAgent } from './server-certificate.ts';
export type { MessageConnection } from './web-socket.ts';
export { parseYaml, parseYamlDocuments, toYaml } from './yaml.ts';
