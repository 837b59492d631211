import { encodeJson } from '@wheelhouse/codec';
import {
  type ApiObject,
  invalid,
  invalidObject,
  type JsonObject,
  parseApiVersion,
  shownApiVersion,
  textOf,
} from '@wheelhouse/machinery';
import { namelessBody } from '../../registry/object-meta.ts';
import type { FieldValidation } from '../../request/options.ts';
import { misfitKind, typeProblem } from '../body/decode-object.ts';
import { Complaints, failStrictly, reportComplaints } from '../body/field-validation.ts';
import type { ApiCall } from '../call.ts';
import { inPatchedOrder } from './patched-order.ts';

interface Options {
  readonly fieldValidation: FieldValidation;
  readonly fail: (why: string) => Error;
}

/**
 * Refuses a patched document that says it is something else than what was patched; `fail` makes the
 * 422 of one that cannot be decoded. A typed one may say nothing.
 */
export function checkPatchedKind(
  call: ApiCall,
  patched: JsonObject,
  options: Options & { readonly current: ApiObject },
): void {
  const { current, fail } = options;
  if (patched['kind'] === current.kind && patched['apiVersion'] === current.apiVersion) return;
  const unreadable = typeProblem(patched);
  if (unreadable !== undefined) throw fail(unreadable);
  if (call.target.def.behavior.bodies === 'typed') {
    const why = misfitKind(call, patched);
    if (why !== undefined) throw fail(why);
    if (shownApiVersion(textOf(patched['apiVersion'])) === '') {
      complainOfAll(call, patched, options);
      throw namelessBody(call.target.name);
    }
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

/** Upstream's decoder finds nothing in what has no version, not even a name: it knows no member. */
function complainOfAll(call: ApiCall, patched: JsonObject, options: Options): void {
  const complaints = new Complaints();
  const names = Object.keys(patched).filter((name) => name !== 'apiVersion' && name !== 'kind');
  for (const name of names.sort()) complaints.unknown(name);
  const { fieldValidation, fail } = options;
  reportComplaints(call, { complaints, fieldValidation, fail: failStrictly(fail) });
}
