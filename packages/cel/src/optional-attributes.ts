import type { Step, Work } from './folds.ts';
import { containsParameters, isDyn, type Type } from './types/types.ts';
import {
  DeclaredList,
  isMapValue,
  Opaque,
  Optional,
  TypeValue,
  Unreadable,
  type Value,
} from './values.ts';

/**
 * The value of a variable, of a choice of `?:`, or of an operand whose member is read. Like cel-go,
 * takes the content of an optional for a Go value and converts it again: an optional in an optional
 * becomes its content, a type becomes its name, and a value of a custom object loses its schema.
 * Values of the Kubernetes libraries, such as quantities, cannot be converted, which is an error
 * where the content is read.
 */
export function asAttribute(value: Value): Value {
  if (!(value instanceof Optional) || value.value === undefined) return value;
  const content = converted(value.value);
  return content === value.value ? value : new Optional(content);
}

function converted(content: Value): Value {
  if (content instanceof Optional) {
    return content.value === undefined ? null : converted(content.value);
  }
  if (content instanceof TypeValue) return content.name;
  if (content instanceof Opaque && content.native !== undefined) {
    return new Unreadable(`unsupported conversion to ref.Val: ${content.native()}`);
  }
  if (content instanceof DeclaredList) return content.undeclared?.() ?? content;
  return isMapValue(content) ? (content.undeclared?.() ?? content) : content;
}

/** Whether a value of the type may be an optional. */
export const mayBeOptional = (type: Type): boolean =>
  type.name === 'optional_type' || isDyn(type) || containsParameters(type);

/** A step whose value is an attribute. */
export const attributeStep =
  (step: Step): Step =>
  (frame) =>
    asAttribute(step(frame));

/** `attributeStep` for work that pauses between its steps. */
export const attributeWork = (work: Work): Work =>
  function* (frame) {
    return asAttribute(yield* work(frame));
  };
