import {
  type FieldError,
  forbiddenField,
  invalidObject,
  notSupported,
  type StatusError,
} from '@wheelhouse/machinery';

/** The query parameters of a list or watch that bear on versions; empty text means unset. */
export interface VersionOptions {
  readonly watch: boolean;
  readonly resourceVersion: string;
  readonly resourceVersionMatch: string;
  readonly continueToken: string;
  readonly sendInitialEvents: boolean | undefined;
  /** Whether a watch may stand for a list; it may when absent. */
  readonly listsByWatch?: 'served' | 'refused';
}

const matchField = 'resourceVersionMatch';

/** The combinations a list or watch may not have (LIST-5, WATCH-5); empty when all is well. */
export function validateListOptions(options: VersionOptions): readonly FieldError[] {
  return options.watch ? validateWatch(options) : validateList(options);
}

/**
 * The 422 for what `validateListOptions` found.
 * @param metaGroup the dialect's group of ListOptions, `meta.…`
 */
export function invalidListOptions(metaGroup: string, errors: readonly FieldError[]): StatusError {
  return invalidObject({ group: metaGroup, kind: 'ListOptions' }, '', errors);
}

function validateList(options: VersionOptions): readonly FieldError[] {
  const errors: FieldError[] = [];
  const { resourceVersionMatch: match, resourceVersion } = options;
  if (match !== '') {
    if (resourceVersion === '') {
      errors.push(
        forbiddenField(matchField, `${matchField} is forbidden unless resourceVersion is provided`),
      );
    }
    if (options.continueToken !== '') errors.push(forbiddenWithContinue());
    if (match !== 'Exact' && match !== 'NotOlderThan') {
      errors.push(notSupported(matchField, match, ['Exact', 'NotOlderThan', '']));
    }
    if (match === 'Exact' && resourceVersion === '0') {
      errors.push(
        forbiddenField(matchField, `${matchField} "exact" is forbidden for resourceVersion "0"`),
      );
    }
  }
  if (options.sendInitialEvents !== undefined) {
    errors.push(forbiddenField('sendInitialEvents', 'sendInitialEvents is forbidden for list'));
  }
  return errors;
}

function validateWatch(options: VersionOptions): readonly FieldError[] {
  const errors: FieldError[] = [];
  const match = options.resourceVersionMatch;
  if (options.sendInitialEvents !== undefined && options.listsByWatch === 'refused') {
    const why =
      'sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled';
    return [forbiddenField('sendInitialEvents', why)];
  }
  if (options.sendInitialEvents !== undefined && match !== 'NotOlderThan') {
    errors.push(
      forbiddenField(
        matchField,
        `sendInitialEvents requires setting ${matchField} to NotOlderThan`,
      ),
    );
  }
  if (match === '') return errors;
  if (options.sendInitialEvents === undefined) {
    const why = `${matchField} is forbidden for watch unless sendInitialEvents is provided`;
    errors.push(forbiddenField(matchField, why));
  }
  if (match !== 'NotOlderThan') {
    errors.push(notSupported(matchField, match, ['NotOlderThan']));
  }
  if (options.continueToken !== '') errors.push(forbiddenWithContinue());
  return errors;
}

function forbiddenWithContinue(): FieldError {
  return forbiddenField(matchField, `${matchField} is forbidden when continue is provided`);
}
