import { goPlain, goText, goTypeName, type JsonValue } from '@wheelhouse/machinery';

/**
 * How a strategic merge patch failed: its own form is bad (400), it asks for what cannot be done
 * (422), or it does not fit the object (an unnamed 500 upstream).
 */
export type StrategicFailure = 'format' | 'unprocessable' | 'mismatch';

/** A strategic merge patch that cannot be applied; the message is upstream's. */
export class StrategicMergeError extends Error {
  readonly kind: StrategicFailure;

  constructor(kind: StrategicFailure, message: string) {
    super(message);
    this.name = 'StrategicMergeError';
    this.kind = kind;
  }
}

const mismatch = (message: string) => new StrategicMergeError('mismatch', message);

export const badPrimitiveList = () =>
  new StrategicMergeError('format', 'invalid patch format of primitive list');
export const badRetainKeys = () =>
  new StrategicMergeError('format', 'invalid patch format of retainKeys');
export const badElementOrder = () =>
  new StrategicMergeError('format', 'invalid patch format of setElementOrder list');
export const listOfLists = () =>
  new StrategicMergeError('unprocessable', 'lists of lists are not supported');

const typeText = (value: JsonValue | undefined) =>
  value === null || value === undefined ? goText(null) : goTypeName(value);

export const noMergeKey = (item: JsonValue, key: string) =>
  mismatch(`map: ${goPlain(item)} does not contain declared merge key: ${key}`);
export const badType = (expected: '[]' | 'map', actual: JsonValue | undefined) => {
  const wanted = expected === '[]' ? '[]interface {}' : 'map[string]interface {}';
  return mismatch(`expected a ${wanted}, but received a ${typeText(actual)}`);
};
export const badDirective = (directive: JsonValue, item: JsonValue) =>
  mismatch(`unknown patch type: ${goText(directive)} in map: ${goPlain(item)}`);
export const mergeDirectiveInList = () =>
  mismatch('merging lists cannot yet be specified in the patch');
export const noKeyDeclared = (typeKind: string) =>
  mismatch(`cannot merge lists without merge key for ${typeKind}`);
export const mixedItems = (lists: readonly JsonValue[]) =>
  mismatch(`list element types are not identical: ${goPlain([...lists])}`);
export const noItems = () => mismatch('no elements in any of the given slices');
export const itemIsNoMap = (index: number) => mismatch(`value for key ${index} is not a map`);
export const orderDiffers = (patch: JsonValue, order: JsonValue) =>
  mismatch(
    `The order in patch list:\n${goPlain(patch)}\n doesn't match $setElementOrder list:\n${goPlain(order)}\n`,
  );
export const noSuchField = (typeName: string, field: string) =>
  mismatch(
    `unable to find api field in struct ${typeName} for the json field ${JSON.stringify(field)}`,
  );
export const notAStruct = (typeKind: string) =>
  mismatch(`merging an object in json but data type is not struct, instead is: ${typeKind}`);
export const notAList = (typeKind: string) =>
  mismatch(`expected slice or array type, but got: ${typeKind}`);
export const retainKeysDiffer = (one: JsonValue, other: JsonValue) =>
  mismatch(
    `${goPlain(one)} and ${goPlain(other)} are not deep equal: ` +
      'this may happen when calculating the 3-way diff patch',
  );
export const badDirectiveValue = () => mismatch('invalid value for special key: $patch');
export const badStrategies = (strategies: readonly string[]) =>
  mismatch(`unexpected patch strategy: [${strategies.join(' ')}]`);
