import type { JsonObject } from '../base/json.ts';
import { encodeJson } from '../codec/json.ts';
import { invalid } from '../meta/field-error.ts';
import { invalidObject } from '../meta/status.ts';
import { type ApiObject, parseApiVersion } from '../meta/types.ts';
import { namelessBody } from '../registry/object-meta.ts';
import type { ApiCall } from './call.ts';
import { misfitKind, typeProblem } from './decode-object.ts';
import { inPatchedOrder } from './patched-order.ts';

/**
 * Refuses a patched document that says it is something else than what was patched; `fail` makes the
 * 422 of one that cannot be decoded. One of a built-in kind may say nothing.
 */
export function checkPatchedKind(
  call: ApiCall,
  patched: JsonObject,
  options: { readonly current: ApiObject; readonly fail: (why: string) => Error },
): void {
  const { current, fail } = options;
  if (patched['kind'] === current.kind && patched['apiVersion'] === current.apiVersion) return;
  const unreadable = typeProblem(patched);
  if (unreadable !== undefined) throw fail(unreadable);
  if (call.target.def.custom === undefined) {
    const why = misfitKind(call, patched);
    if (why !== undefined) throw fail(why);
    // Upstream's decoder tells nothing of what has no version, not even its name.
    if ((patched['apiVersion'] ?? '') === '') throw namelessBody(call.target.name);
    return;
  }
  const kind = (patched['kind'] ?? '') as string;
  const apiVersion = (patched['apiVersion'] ?? '') as string;
  if (kind === '') {
    const sorted = inPatchedOrder(patched, { schema: undefined, type: 'merge', patch: {} });
    throw fail(`Object 'Kind' is missing in '${encodeJson(sorted).toString('utf8')}'`);
  }
  if (apiVersion === '') throw fail("Object 'apiVersion' is missing");
  const { group = '' } = parseApiVersion(apiVersion) ?? {};
  throw invalidObject({ group, kind }, call.target.name, [
    ...(kind === current.kind ? [] : [invalid('kind', kind, `must be ${current.kind}`)]),
    ...(apiVersion === current.apiVersion
      ? []
      : [invalid('apiVersion', apiVersion, `must be ${current.apiVersion}`)]),
  ]);
}
