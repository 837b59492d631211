/**
 * API machinery that every other package builds on: JSON values, names, quantities, selectors,
 * Status errors, clocks, metrics, and bounds on work and memory.
 */

export {
  type Clock,
  type DeadlineEntry,
  Deadlines,
  deadlineEarlyMs,
  delayMsMax,
  holdProcess,
  MovableClock,
  pause,
  programClock,
  systemClock,
  type Timer,
} from './base/clock.ts';
export { makeDirectories, syncDirectory, syncDirectoryNow } from './base/directories.ts';
export {
  BodyAborted,
  type BodyPiece,
  type BodyReceiver,
  type BodyStream,
  BodyTooLarge,
  type ByteRun,
  type ChargedMemory,
  type Connection,
  type DetachedConnection,
  type Exchange,
  firstPieces,
  isRun,
  isWhole,
  type OnExchange,
  pieceBytes,
  type ResponseBody,
  type ResponseHeaders,
  type ResponseStream,
  totalBytes,
  type WaitingClient,
  type WholeResponse,
  wholeBytes,
} from './base/exchange.ts';
export { createExpiringCache, memoized, sharedPromise } from './base/expiring-cache.ts';
export type { MaybePromise } from './base/faults.ts';
export {
  background,
  type Containment,
  contained,
  containedEach,
  defer,
  deferMicrotask,
  errorText,
  type Fault,
  ignoreErrors,
  listen,
  listenEach,
  observeFaults,
  pendingPromise,
  reportFault,
  returningErrors,
  systemErrorCode,
  whenAborted,
} from './base/faults.ts';
export { nextTurn, random, randomBelow, randomUuid } from './base/host.ts';
export { acceptsCoding, parseWebSocketProtocols, redactSecrets } from './base/http-text.ts';
export {
  copyIntegralFloats,
  type IntegralFloats,
  integralFloatsOf,
  isIntegralFloat,
  recordIntegralFloats,
} from './base/integral-floats.ts';
export {
  cloneJson,
  cloneJsonSteps,
  isLight,
  isObject,
  type JsonArray,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  jsonEqualExcept,
  jsonEqualExceptSteps,
  jsonEqualSteps,
  jsonObject,
  member,
  objectsOf,
  parseJson,
  Stride,
  setMember,
  stringsOf,
  textMembers,
  textOf,
  textsOf,
} from './base/json.ts';
export {
  appendAll,
  firstByName,
  itemAt,
  largest,
  repeats,
  smallest,
  sortSteps,
} from './base/lists.ts';
export { type LogFields, type Logger, silentLogger } from './base/log.ts';
export { MemoryAccount, MemoryBudget, MemoryShortage, memoryUses } from './base/memory-budget.ts';
export type { Summary } from './base/metrics.ts';
export {
  type AllowedLabels,
  type Counter,
  createMetricRegistry,
  type Family,
  type Gauge,
  type Histogram,
  type MetricRegistry,
  type Stability,
} from './base/metrics.ts';
export {
  emptyOrderedMap,
  leafSpans,
  MapOwner,
  type OrderedMap,
  orderedMapDelete,
  orderedMapGet,
  orderedMapOf,
  orderedMapRank,
  orderedMapSet,
  orderedMapSteps,
  orderedMapValues,
} from './base/ordered-map.ts';
export { type Random, randomOf } from './base/random.ts';
export { isInSlab, Slab } from './base/slab.ts';
export { checkServerNames, legacyNameCode, trustOptions } from './base/trust.ts';
export {
  goEscaped,
  type Webhook,
  WebhookError,
  type WebhookOutcome,
  webhookBody,
} from './base/webhook.ts';
export {
  concatSteps,
  LoopOccupancy,
  type Pace,
  pacedBytesMin,
  paceFor,
  runAtPace,
  runInOnePiece,
  runInSlices,
  Slices,
  WorkBudget,
  WorkExceeded,
} from './base/work.ts';
export {
  booleanOf,
  type CommandLine,
  editsBetween,
  FlagError,
  type FlagForm,
  parseCommandLine,
} from './command-line.ts';
export {
  acceptedDiscoveryGroups,
  acceptedMetaGroups,
  channelProtocols,
  type Dialect,
  type DialectName,
  dialectNames,
  dialectOf,
} from './dialect.ts';
export {
  BoundedTexts,
  boundedList,
  listedBytesMax,
  listedMax,
  longerPath,
  omittedText,
  pairErrorsMax,
  pairWarningsMax,
  shownPathMax,
  shownTextMax,
  truncateText,
} from './meta/answer-bounds.ts';
export {
  duplicate,
  type FieldError,
  forbiddenField,
  goItems,
  internal,
  invalid,
  invalidGo,
  notSupported,
  required,
  showHead,
  showValue,
  tooLong,
  tooMany,
  typeInvalid,
  withField,
} from './meta/field-error.ts';
export {
  normalizePath,
  normalizeUrlPath,
  parseGoRequestUrl,
  parseGoUrl,
  printGoUrl,
} from './meta/go-url.ts';
export {
  base64ErrorAt,
  canonicalBase64,
  canonicalJson,
  compareText,
  goEscapes,
  goFloat,
  goPlain,
  goQuoted,
  goSyntax,
  goText,
  goTypeName,
} from './meta/go-values.ts';
export {
  blockContains,
  blockHas,
  blockSize,
  formatIpAddress,
  formatIpBlock,
  formatStrictly,
  type IpBlock,
  ipVersion,
  parseIpAddress,
  parseIpBlock,
  specialRanges,
  strictAddressProblem,
} from './meta/ip-address.ts';
export { evaluateJsonPath, type JsonPathBudget, type JsonPathOptions } from './meta/jsonpath.ts';
export {
  type JsonPath,
  JsonPathError,
  type JsonPathNode,
  parseJsonPath,
} from './meta/jsonpath-parser.ts';
export type { LabelOperator, LabelRequirement, LabelSelection } from './meta/label-selector.ts';
export {
  compileLabelSelector,
  isEmptySelector,
  type LabelSelector,
  selectorTermsMax,
  selects,
  validateLabelSelector,
} from './meta/label-selector.ts';
export {
  configMapKey,
  dns1035Label,
  dnsLabel,
  dnsSubdomain,
  domainPrefixedPath,
  environmentName,
  exceedsBytes,
  generateName,
  inRange,
  labelValue,
  type NameRule,
  pathSegment,
  portName,
  qualifiedName,
  ruleErrors,
  strictEnvironmentName,
  underscoreSubdomain,
  wildcardSubdomain,
} from './meta/names.ts';
export {
  asPrefix,
  dedupOwnerReferences,
  foregroundFinalizer,
  type MetadataPass,
  type MetaRules,
  orphanFinalizer,
  unprintable,
  validateAnnotations,
  validateFieldManager,
  validateLabels,
  validateObjectMeta,
  validateObjectMetaUpdate,
} from './meta/object-meta.ts';
export {
  descriptionOf,
  itemOf,
  propertiesOf,
  schemaOfKind,
  typeName,
} from './meta/published-schema.ts';
export {
  milliValue,
  parseQuantity,
  type Quantity,
  roundToThousandths,
  sumQuantities,
} from './meta/quantity.ts';
export {
  type FieldRequirement,
  parseFieldSelector,
  parseLabelSelector,
} from './meta/selectors.ts';
export {
  AccessDenied,
  alreadyExists,
  badRequest,
  conflict,
  expired,
  forbidden,
  internalError,
  invalidObject,
  methodNotAllowedOnPath,
  methodNotSupported,
  modifiedMessage,
  notAcceptable,
  notFound,
  notRepresentable,
  pathNotFound,
  qualifiedResource,
  type Status,
  type StatusDetails,
  StatusError,
  serviceUnavailable,
  timedOut,
  tooLarge,
  tooLargeResourceVersion,
  tooManyValues,
  unsupportedMediaType,
} from './meta/status.ts';
export { fieldErrorTypes, type StatusReason, statusReasons } from './meta/status-reasons.ts';
export {
  formatMicroTime,
  formatTime,
  humanDuration,
  isWrittenTime,
  parseGoTime,
  printGoTime,
} from './meta/times.ts';
export {
  type ApiObject,
  apiVersionOf,
  asApiObject,
  type GroupKind,
  type GroupResource,
  type GroupVersion,
  isLongRunning,
  isReadOnly,
  itemsOfList,
  type ManagedFieldsEntry,
  nodeOfUser,
  normalizeApiVersion,
  type ObjectMeta,
  type OwnerReference,
  parseApiVersion,
  type RequestSubject,
  type UserInfo,
} from './meta/types.ts';
export {
  aggregateText,
  fieldErrorsText,
  goValue,
  type Problem,
  problemText,
  typeMetaStruct,
} from './meta/wording.ts';
