/** Decodes, defaults, prunes, and validates JSON objects by a structural schema. */

export {
  applyDefaults,
  type CustomDecoder,
  decodeCustom,
  pruneCustom,
  pruneValue,
} from './decode/custom-object.ts';
export type { DecodeSource } from './decode/decode-context.ts';
export {
  DecodeError,
  exceedsDepth,
  isOmittedEmpty,
  maxDepth,
  removeOmitted,
  restoreOmitted,
} from './decode/decode-context.ts';
export {
  copyDecoded,
  copyDecodedSteps,
  decodeTyped,
  decodeTypedSteps,
  settleEmpty,
} from './decode/decode-typed.ts';
export {
  coerceEmbedded,
  EmbeddedError,
  type EmbeddedRules,
  validateEmbedded,
} from './decode/embedded.ts';
export { type EarlierValues, mergeRepeatedSteps } from './decode/repeated-members.ts';
export { childPath, FoundPaths, indexPath, keyPath } from './field-paths.ts';
export { schemaFromOpenApi } from './from-openapi.ts';
export {
  durationFlag,
  goDurationError,
  goType,
  parseGoDuration,
  printGoDuration,
  shortTypeName,
} from './go-wording.ts';
export {
  type Alternatives,
  anySchema,
  type CelRule,
  isBooleanSchema,
  type NestedValidation,
  noSchema,
  type Property,
  resolved,
  type Schema,
  type ValueValidation,
} from './schema.ts';
export { formatCheck, parseDurationFormat } from './validation/formats.ts';
export { validateUniqueness } from './validation/list-uniqueness.ts';
export {
  checkPatternParts,
  isLargePattern,
  Pattern,
  type PatternAge,
} from './validation/pattern.ts';
export { validate, validateStructure } from './validation/validate.ts';
export { codePointCount, noField } from './validation/validate-scalars.ts';
export {
  type Correlation,
  correlate,
  correlateItem,
  correlateMember,
  isUnchanged,
} from './validation/validation-result.ts';
