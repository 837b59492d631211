import { type FieldError, invalid, required } from '@wheelhouse/machinery';
import type { ValidatingAdmissionPolicy } from '../gen/types/admissionregistration/v1.ts';
import type { Stored } from '../stored.ts';

/** What is wrong with what a policy's status tells of the types of its expressions. */
export function validateTypeChecking(object: Stored<ValidatingAdmissionPolicy>): FieldError[] {
  const path = 'status.typeChecking.expressionWarnings';
  const warnings = object.status?.typeChecking?.expressionWarnings ?? [];
  return warnings.flatMap((one, index) => [
    ...((one.warning ?? '') === '' ? [required(`${path}[${index}].warning`)] : []),
    ...validateFieldRef((one.fieldRef ?? '').trim(), `${path}[${index}].fieldRef`),
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
