/**
 * The built-in kinds, and the form that custom kinds take: schemas, defaults, validation, columns.
 */

export type {
  AdmissionKindOptions,
  ExpressionChecker,
} from './admissionregistration/expressions.ts';
export {
  AcceptedNames,
  checkStructure,
  type ReconcileOptions,
  reconcileCrd,
  setCondition,
} from './apiextensions/crd-status.ts';
export type { RuleChecker } from './apiextensions/crd-validation.ts';
export {
  cleanupFinalizerName,
  customKindDeps,
  definitionsPrefix,
} from './apiextensions/custom-resource-definition.ts';
export type { DefaultValidator } from './apiextensions/default-rules.ts';
export { availableCondition, localAvailability } from './apiregistration/api-service.ts';
export { selectorText } from './apps/workload.ts';
export { scale, validateScale } from './autoscaling/scale.ts';
export {
  builtinGroupOrder,
  isKnownGroup,
  isKnownGroupVersion,
  knownGroupVersions,
} from './builtin-groups.ts';
export { builtinKinds } from './builtin-kinds.ts';
export {
  age,
  at,
  createdAtColumn,
  listAt,
  nameColumn,
  numberAt,
  stepsOf,
  textAt,
  valueAt,
} from './cells.ts';
export { certificateRequestProblem, requestedNames } from './certificates/certificate-request.ts';
export type {
  CertificateOptions,
  IssuedCertificate,
} from './certificates/certificate-signing-request.ts';
export { oldestEmulationVersion } from './coordination/lease.ts';
export { allocateService, type NumberMeter } from './core/service/allocator.ts';
export { type Family, familyOf } from './core/service/cluster-ips.ts';
export { numbersIn, ServiceLedger, unknownOutcomeMs } from './core/service/ledger.ts';
export {
  type AddressPool,
  createWholePool,
  defaultServiceRanges,
  type Pool,
  readServiceRanges,
  type ServiceRanges,
  type ServiceRangeTexts,
} from './core/service/pools.ts';
export type { AddressOwner, AddressRecords, NumberClaims } from './core/service/shared-numbers.ts';
export {
  addressesOf,
  addressRecorder,
  type NumberRecorder,
  recordingNumbers,
  releasingNumbers,
} from './core/service/shared-numbers.ts';
export { asService } from './core/service/spec.ts';
export type { ServiceOptions } from './core/service.ts';
export { parseColumns } from './custom/columns.ts';
export {
  type Crd,
  type CrdNames,
  type CrdStatus,
  crdIsEstablished,
  crdOf,
  customPrefix,
} from './custom/definition.ts';
export {
  type CustomKindDeps,
  type CustomResourceDef,
  compareVersions,
  fromCrd,
  hasOlderForms,
} from './custom/from-definition.ts';
export { integerProblem, type RuleCompiler } from './custom/strategy.ts';
export { defineKind } from './define.ts';
export {
  type Descriptions,
  describedIn,
  type TypeDescriptions,
} from './descriptions/descriptions.ts';
export {
  directoryOfGroup,
  groupOfDirectory,
  hasStructFacts,
  splitTypeName,
  structFacts,
} from './facts.ts';
export {
  defaultFeatures,
  type Features,
  type GateEntry,
  type GateName,
  type GateStage,
  gateTable,
} from './features/features.ts';
export {
  autoUpdateAnnotation,
  defaultFlowObjects,
  mandatoryFlowNames,
} from './flowcontrol/default-objects.ts';
export {
  builtinBehavior,
  type KindBehavior,
  type ObjectConverter,
  type ScaleBehavior,
  type ScalePaths,
} from './kind-behavior.ts';
export { schemaOfKind } from './kind-schema.ts';
export { loadKindSchema, loadOlderReleases, loadPrivilegedPods } from './lazy.ts';
export { addressLabels, cidrsOf, isReady } from './networking/service-addresses.ts';
export { kindsOfAllReleases } from './older/release.ts';
export {
  type Amounts,
  addAmounts,
  amountsOf,
  amountsOfSteps,
  containerAmountsSteps,
  largerAmounts,
  podAmountsSteps,
  qualityOfService,
  statesPodAmounts,
  sumAmounts,
} from './pod/amounts.ts';
export {
  claimNames,
  containersOf,
  namesConfigMaps,
  namesSecrets,
  podReferencesSteps,
} from './pod/references.ts';
export { validateTolerations } from './pod/validation/placement.ts';
export {
  boundedEscalation,
  compactRules,
  escalationMessage,
  piecesOf,
  ruleEscalation,
} from './rbac/escalation.ts';
export {
  matchesUrl,
  type PolicyRule,
  policyRule,
  rulesOf,
  rulesSteps,
  trimStars,
} from './rbac/policy-rule.ts';
export {
  type Allocation,
  type AllocationOutcome,
  type ApiVerb,
  apiVersionIn,
  type CatalogueSnapshot,
  type ColumnDef,
  type Findings,
  fromStorage,
  type MaybeSteps,
  type ResourceDef,
  type StorageDef,
  type Stored,
  type Strategy,
  type StrategyContext,
  type SubresourceDef,
  servesStoredForm,
  subresourcesOf,
  toStorage,
  type VersionDef,
  versionNamed,
} from './resource-def.ts';
export { same, tokenLifetimeErrors } from './rules/checks.ts';
export { ensure, objectAt, objectsAt } from './rules/fill.ts';
export { currentMinor, type Removal, releaseName } from './rules/life.ts';
export { schemaOf } from './schema-of.ts';
