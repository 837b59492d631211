/** The schema engine: decodes, defaults, prunes, and validates JSON objects by a structural schema. */

export { type CustomDecoder, decodeCustom, pruneCustom } from './decode/custom-object.ts';
export type { DecodeSource } from './decode/decode-context.ts';
export { base64ErrorAt } from './decode/decode-scalars.ts';
export {
  copyDecoded,
  copyDecodedSteps,
  decodeTyped,
  decodeTypedSteps,
  settleEmpty,
} from './decode/decode-typed.ts';
export { applyDefaults, copyJson } from './decode/defaults.ts';
export { DecodeError, exceedsDepth, maxDepth } from './decode/depth.ts';
export {
  coerceEmbedded,
  EmbeddedError,
  type EmbeddedRules,
  validateEmbedded,
} from './decode/embedded.ts';
export { pruneValue } from './decode/prune.ts';
export { FoundPaths } from './found-paths.ts';
export { schemaFromOpenApi } from './from-openapi.ts';
export { goDurationError, parseGoDuration, printGoDuration } from './go-duration.ts';
export { goType, shortTypeName } from './go-wording.ts';
export { childPath, indexPath, keyPath } from './path.ts';
export {
  type Alternatives,
  anySchema,
  type CelRule,
  type NestedValidation,
  noSchema,
  type Property,
  resolved,
  type Schema,
  saysNothing,
  type ValueValidation,
} from './schema.ts';
export {
  type Correlation,
  correlate,
  correlateItem,
  correlateMember,
  isUnchanged,
} from './validation/correlation.ts';
export { formatCheck } from './validation/formats.ts';
export { validateUniqueness } from './validation/list-uniqueness.ts';
export { Pattern } from './validation/pattern.ts';
export { validate, validateStructure } from './validation/validate.ts';
export { noField } from './validation/validate-scalars.ts';
