import {
  badRequest,
  type FieldError,
  forbiddenField,
  invalid,
  invalidObject,
  parseGoTime,
} from '@wheelhouse/machinery';
import { optionalInteger, optionalText } from '../../request/options.ts';

/** Judges what is asked of a pod's log, as upstream does before it looks for the pod. Throws 400, 422. */
export function checkLogOptions(query: URLSearchParams, pod: string): void {
  const read = (name: string) => ({ name, value: optionalInteger(query, name) });
  const [tail, limit, since] = [read('tailLines'), read('limitBytes'), read('sinceSeconds')];
  const sinceTime = optionalText(query, 'sinceTime');
  const time = sinceTime === undefined ? undefined : parseGoTime(sinceTime);
  if (time !== undefined && 'error' in time) throw badRequest(time.error);
  const isTwofold = since.value !== undefined && sinceTime !== undefined;
  const errors: FieldError[] = [
    ...atLeast(tail, 0, 'must be greater than or equal to 0'),
    ...atLeast(limit, 1, 'must be greater than 0'),
    ...(isTwofold
      ? [forbiddenField('[]', 'at most one of `sinceTime` or `sinceSeconds` may be specified')]
      : atLeast(since, 1, 'must be greater than 0')),
    // One of the two streams alone is behind a gate that is off.
    ...(query.has('stream') ? [forbiddenField('stream', 'may not be specified')] : []),
  ];
  if (errors.length > 0) throw invalidObject({ group: '', kind: 'PodLogOptions' }, pod, errors);
}

function atLeast(
  { name, value }: { readonly name: string; readonly value: number | undefined },
  least: number,
  detail: string,
): FieldError[] {
  return value === undefined || value >= least ? [] : [invalid(name, value, detail)];
}
