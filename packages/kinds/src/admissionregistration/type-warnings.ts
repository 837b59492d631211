import { type FieldError, invalid, type JsonObject, required } from '@wheelhouse/machinery';
import { textAt } from '../cells.ts';
import { objectsAt } from '../rules/fill.ts';

/** What is wrong with what a policy's status tells of the types of its expressions. */
export function validateTypeChecking(object: JsonObject): FieldError[] {
  const path = 'status.typeChecking.expressionWarnings';
  const warnings = objectsAt(object, 'status', 'typeChecking', 'expressionWarnings');
  return warnings.flatMap((one, index) => [
    ...(textAt(one, 'warning') === '' ? [required(`${path}[${index}].warning`)] : []),
    ...validateFieldRef(textAt(one, 'fieldRef').trim(), `${path}[${index}].fieldRef`),
  ]);
}

function validateFieldRef(ref: string, field: string): FieldError[] {
  if (ref === '') return [required(field)];
  const why = pathProblem(ref);
  return why === undefined ? [] : [invalid(field, ref, `invalid JSONPath: ${why}`)];
}

/** What may stand in brackets: indices, slices, names in quotes, all of them, or a condition. */
const inBrackets = /^(?:-?\d*(?::-?\d*){0,2}(?:,-?\d+)*|'[^']*'|"[^"]*"|\*|\?\(.*\))$/s;

/** Why a path is none, in upstream's words; undefined for one that is. */
function pathProblem(path: string): string | undefined {
  for (let at = path.indexOf('['); at >= 0; at = path.indexOf('[', at)) {
    const end = path.indexOf(']', at);
    if (end < 0) return 'unterminated array';
    const content = path.slice(at + 1, end).trim();
    if (content === '' || !inBrackets.test(content)) return `invalid array index ${content}`;
    at = end;
  }
  return undefined;
}
