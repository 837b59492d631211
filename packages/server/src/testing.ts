/** What tests, benchmarks, and the siege need besides the public index. No promise of stability. */

export { type Api, createApi } from './compose/api.ts';
export { auditFlags } from './compose/audit/audit-flags.ts';
export type { AuditBackendSettings, AuditSettings } from './compose/audit/audit-settings.ts';
export { readAuthorization } from './compose/authorization/authorization-settings.ts';
export { writeAdminKubeconfig } from './compose/certificates/admin-kubeconfig.ts';
export {
  ensureCa,
  ensureServingCertificates,
  issueClientCertificate,
} from './compose/certificates/certificates.ts';
export {
  type IssuedCertificate,
  issueCertificate,
} from './compose/certificates/certificates-x509.ts';
export { startControllers } from './compose/controllers/controllers.ts';
export type { EtcdSettings, LeaderElectionSettings, ServerConfig } from './compose/flags/config.ts';
export { defaultGates, describeGates, readFeatureGates } from './compose/flags/feature-gates.ts';
export { describeFlags, FlagError, parseFlags } from './compose/flags/flags.ts';
export { serverFlags } from './compose/flags/flags-table.ts';
export { readOptions } from './compose/flags/options.ts';
export { configuredKinds, type RuntimeConfig } from './compose/flags/runtime-config.ts';
export { createGates } from './compose/gates.ts';
export { createHealth } from './compose/health/health.ts';
export { createMetrics } from './compose/process/metrics.ts';
export { checkExpression, checkRules, judgeDefault } from './compose/rule-engine.ts';
export { type RunningServer, startServer } from './compose/server.ts';
export { createServiceNumbers } from './compose/services/service-numbers.ts';
export { idleReason } from './compose/serving/idle-gates.ts';
export { createWebhook, type WebhookAttempt } from './compose/webhooks/webhook-client.ts';
export { webhookInCluster, webhookOfKubeconfig } from './compose/webhooks/webhook-connection.ts';
export { parseCertificate } from './gates/authn/certificate.ts';
export { readAuthenticationConfiguration } from './gates/authn/jwt/configuration.ts';
export { FetchError, fetchText } from './gates/authn/jwt/fetch.ts';
export { Provider } from './gates/authn/jwt/provider.ts';
export { readToken } from './gates/authn/jwt/token.ts';
export { validateAuthentication } from './gates/authn/jwt/validate.ts';
export { readSigningKey, type SigningKey } from './gates/authn/service-account-token.ts';
export { createWebhookTokenAuthenticator } from './gates/authn/webhook-token.ts';
export { createAbacAuthorizer } from './gates/authz/abac/abac-authorizer.ts';
export { AbacPolicyError, parseAbacPolicies } from './gates/authz/abac/abac-policy.ts';
export { loadAuthorizationConfiguration } from './gates/authz/authorization-configuration.ts';
export type { Attributes } from './gates/authz/contract.ts';
export { defaultRbac } from './gates/authz/rbac/default-roles.ts';
export { createRbacAuthorizer } from './gates/authz/rbac/rbac-authorizer.ts';
export { createWebhookAuthorizer } from './gates/authz/webhook-authorizer.ts';
export type { FlowRequest } from './gates/flowcontrol/contract.ts';
export { FairFlowControl } from './gates/flowcontrol/fair-flow-control.ts';
export { createFlowMetrics } from './gates/flowcontrol/flow-metrics.ts';
export { limitInFlight } from './gates/flowcontrol/in-flight.ts';
export { readLevel, readSchema } from './gates/flowcontrol/settings.ts';
export { WatchCounts } from './gates/flowcontrol/watch-counts.ts';
export { main } from './main.ts';
export { createPipeline, type Gates } from './pipeline.ts';
export { Http2Exchange } from './serving/http2-exchange.ts';
export { defaultHttpLimits, type HttpLimits } from './serving/limits.ts';
export { type HttpServer, startHttpServer } from './serving/server.ts';
export { ServerCore } from './serving/server-core.ts';
export {
  type Entry,
  type EntryChange,
  EntryHint,
  type EntryIndex,
  type ListRequest,
  type ListResult,
  type ResourceCache,
} from './watchcache/contract.ts';
export { createResourceCache } from './watchcache/resource-cache.ts';
