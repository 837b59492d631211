/** Server-side apply (field sets, field managers, typed merge) and the other types of patches. */

export { applyPatch, applySteps, describe, describeKind } from './apply/apply-patch.ts';
export {
  ConversionNeeded,
  isSameButOwners,
  type LastApplied,
  recordSteps,
  recordUpdate,
  sameButOwnersSteps,
  type TrackedKind,
} from './apply/field-manager.ts';
export { setOfFields } from './apply/field-set.ts';
export { decodeManagedSteps } from './apply/managed-fields.ts';
export { mergeSteps } from './apply/merge.ts';
export {
  ownersForScale,
  ownersFromScale,
  ownersOf,
  type ScaleMapping,
  upgradeOwners,
} from './apply/owners.ts';
export { type FieldPath, fieldElement } from './apply/path-element.ts';
export { TypedError, validateTypedSteps } from './apply/validate-typed.ts';
export { fitting, resourceType, type ValueType } from './apply/value-type.ts';
export {
  applyJsonPatch,
  type JsonPatchOperation,
  jsonPatchWork,
  PatchError,
  parseJsonPatch,
  pointerSteps,
} from './patch/json-patch.ts';
export {
  applyMergePatch,
  mergePatchBetween,
  mergePatchSteps,
  threeWayMergePatch,
  withoutNulls,
} from './patch/merge-patch.ts';
export {
  patchesConflict,
  strategicPatchBetween,
  type ThreeWayObjects,
  threeWayStrategicPatch,
} from './patch/strategic-diff.ts';
export { StrategicMergeError } from './patch/strategic-fields.ts';
export {
  remainingPatchSteps,
  strategicMerge,
  strategicMergeSteps,
} from './patch/strategic-merge.ts';
