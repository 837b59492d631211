/** Exports for tests, benchmarks, and the siege, in addition to the public index. Not stable. */

import { admissionFormat } from './admission/configuration/file.ts';
import {
  eventRateLimitFormat,
  podTolerationFormat,
  resourceQuotaFormat,
  webhookAdmissionFormat,
} from './admission/configuration/plugins.ts';
import { podSecurityFormat } from './admission/configuration/pod-security.ts';
import { egressFormat } from './aggregation/egress.ts';
import { tracingFormat } from './compose/observability/tracing.ts';
import { auditPolicyFormat } from './gates/audit/policy.ts';
import { authenticationFormat } from './gates/authn/jwt/configuration.ts';
import { authorizationFormat } from './gates/authz/authorization-configuration.ts';

export { checkExpression, checkRules, validateDefault } from './admission/rule-engine.ts';
export { type Api, openApi } from './compose/api.ts';
export { configuredKinds, type RuntimeConfig } from './compose/apis/settings.ts';
export type { AuditBackendSettings, AuditSettings } from './compose/audit/settings.ts';
export { auditFlags } from './compose/audit/settings.ts';
export { readAuthorization } from './compose/authorization/authorizers.ts';
export { readOptions, serverFlags } from './compose/command-line.ts';
export type { ServerConfig } from './compose/config.ts';
export { startControllers } from './compose/controllers/controllers.ts';
export type { LeaderElectionSettings } from './compose/controllers/settings.ts';
export { createMetrics } from './compose/observability/metrics.ts';
export { OpenParts } from './compose/parts.ts';
export { type RunningServer, startServer } from './compose/server.ts';
export { serviceNumberPort } from './compose/service-network/service-numbers.ts';
export {
  ensureCa,
  ensureServingCertificates,
  issueClientCertificate,
} from './compose/serving/serving-tls.ts';
export type { EtcdSettings } from './compose/storage/settings.ts';
export { writeAdminKubeconfig } from './files/data-directory.ts';
export {
  defaultGates,
  describeGates,
  idleReason,
  readFeatureGates,
} from './flags/feature-gates.ts';
export { describeFlags, FlagError, parseFlags } from './flags/flags.ts';
export { readAuthenticationConfiguration } from './gates/authn/jwt/configuration.ts';
export { FetchError, fetchText } from './gates/authn/jwt/fetch.ts';
export { Provider } from './gates/authn/jwt/provider.ts';
export { readToken } from './gates/authn/jwt/token.ts';
export { validateAuthentication } from './gates/authn/jwt/validate.ts';
export {
  readSigningKey,
  type SigningKey,
  signClaims,
  tokenPayload,
} from './gates/authn/service-account-token.ts';
export { createWebhookTokenAuthenticator } from './gates/authn/webhook-token.ts';
export {
  AbacPolicyError,
  createAbacAuthorizer,
  parseAbacPolicies,
} from './gates/authz/abac/abac-authorizer.ts';
export { loadAuthorizationConfiguration } from './gates/authz/authorization-configuration.ts';
export { defaultRbac } from './gates/authz/rbac/default-roles.ts';
export { createRbacAuthorizer } from './gates/authz/rbac/rbac-authorizer.ts';
export { RbacChanges } from './gates/authz/rbac/rbac-changes.ts';
export { createWebhookAuthorizer } from './gates/authz/webhook-authorizer.ts';
export type { FlowRequest } from './gates/flowcontrol/contract.ts';
export { limitInFlight } from './gates/flowcontrol/contract.ts';
export { FairFlowControl, WatchCounts } from './gates/flowcontrol/fair-flow-control.ts';
export { createFlowMetrics } from './gates/flowcontrol/flow-metrics.ts';
export { readLevel, readSchema } from './gates/flowcontrol/settings.ts';
export { main } from './main.ts';
export { createHealth } from './observe/health.ts';
export { createPipeline, type Gates } from './pipeline.ts';
export type { Attributes } from './registry/permit.ts';
export {
  type IssuedCertificate,
  issueCertificate,
} from './serving/generated-certificates.ts';
export { Http2Exchange } from './serving/http2-server.ts';
export { defaultHttpLimits, type HttpLimits } from './serving/limits.ts';
export { type HttpServer, startHttpServer } from './serving/server.ts';
export { ServerCore } from './serving/server-core.ts';
export type { EntryChange, ListRequest, ListResult, ResourceCache } from './watchcache/contract.ts';
export { type Entry, EntryHint, type EntryIndex } from './watchcache/entry.ts';
export { createResourceCache } from './watchcache/resource-cache.ts';
export {
  createWebhook,
  type WebhookAttempt,
  webhookInCluster,
  webhookOfKubeconfig,
} from './webhooks/webhook-client.ts';

/** The formats of the files that flags of the server name, in the order of their page. */
export const configurationFormats = [
  admissionFormat,
  podSecurityFormat,
  resourceQuotaFormat,
  eventRateLimitFormat,
  podTolerationFormat(),
  webhookAdmissionFormat,
  authenticationFormat,
  authorizationFormat,
  auditPolicyFormat,
  tracingFormat,
  egressFormat,
];
