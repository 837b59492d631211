import { dialectOf, type JsonValue, StatusError } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import {
  parseCreateOptions,
  parseDeleteOptions,
  parseListOptions,
  parsePatchOptions,
  parseUpdateOptions,
} from './options.ts';

const dialect = dialectOf('svc');
const query = (text: string) => new URLSearchParams(text);

function failure(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof StatusError) return `${error.code} ${error.message}`;
    throw error;
  }
  return '';
}

describe('options of writes', () => {
  test('defaults', () => {
    const defaults = { dryRun: false, fieldManager: undefined, fieldValidation: 'Warn' };
    expect(parseCreateOptions(query(''), dialect)).toEqual(defaults);
    expect(
      parseUpdateOptions(query('dryRun=&fieldManager=&fieldValidation=&x=y'), dialect),
    ).toEqual(defaults);
  });

  test('values', () => {
    const text = 'dryRun=All&fieldManager=me&fieldValidation=Strict';
    expect(parseCreateOptions(query(text), dialect)).toEqual({
      dryRun: true,
      fieldManager: 'me',
      fieldValidation: 'Strict',
    });
  });

  test.each([
    ['dryRun=all', 'dryRun: Unsupported value: []string{"all"}: supported values: "All"'],
    [
      'dryRun=All&dryRun=x',
      'dryRun: Unsupported value: []string{"All", "x"}: supported values: "All"',
    ],
    [
      'fieldValidation=warn',
      'fieldValidation: Unsupported value: "warn": ' +
        'supported values: "", "Ignore", "Strict", "Warn"',
    ],
    [`fieldManager=${'é'.repeat(65)}`, 'fieldManager: Too long: may not be more than 128 bytes'],
    [
      'fieldManager=%C3%A9%09',
      'fieldManager: Invalid value: "é\\t": invalid character U+0009 (at position 2)',
    ],
  ])('%s', (text, message) => {
    expect(failure(() => parseCreateOptions(query(text), dialect))).toBe(
      `422 CreateOptions.meta.svc.io "" is invalid: ${message}`,
    );
    expect(failure(() => parseUpdateOptions(query(text), dialect))).toBe(
      `422 UpdateOptions.meta.svc.io "" is invalid: ${message}`,
    );
  });

  test('force is only for apply, which needs a manager', () => {
    const patch = (text: string, isApply: boolean) => () =>
      parsePatchOptions(query(text), { dialect, isApply });
    expect(patch('force&fieldManager=x', true)().force).toBe(true);
    expect(patch('force=false&fieldManager=x', true)().force).toBe(false);
    expect(failure(patch('force=false', false))).toBe(
      '422 PatchOptions.meta.svc.io "" is invalid: ' +
        'force: Forbidden: may not be specified for non-apply patch',
    );
    expect(failure(patch('fieldManager=', true))).toBe(
      '422 PatchOptions.meta.svc.io "" is invalid: ' +
        'fieldManager: Required value: is required for apply patch',
    );
  });
});

describe('options of lists', () => {
  test('values', () => {
    const text =
      'limit=5&timeoutSeconds=%2B7&allowWatchBookmarks&sendInitialEvents=false&continue=x';
    expect(parseListOptions(query(text))).toMatchObject({
      limit: 5,
      timeoutSeconds: 7,
      allowWatchBookmarks: true,
      sendInitialEvents: false,
      continueToken: 'x',
    });
  });

  test.each([
    ['limit=x', '400 strconv.ParseInt: parsing "x": invalid syntax'],
    ['limit=', '400 strconv.ParseInt: parsing "": invalid syntax'],
    ['limit=1.0', '400 strconv.ParseInt: parsing "1.0": invalid syntax'],
    [
      'timeoutSeconds=9223372036854775808',
      '400 strconv.ParseInt: parsing "9223372036854775808": value out of range',
    ],
  ])('%s', (text, message) => {
    expect(failure(() => parseListOptions(query(text)))).toBe(message);
  });
});

describe('options of deletions', () => {
  const remove = (text: string, body?: JsonValue) => parseDeleteOptions(query(text), dialect, body);

  test('from the query', () => {
    const text =
      'gracePeriodSeconds=-5&propagationPolicy=Orphan&uid=u&resourceVersion=7&dryRun=All';
    expect(remove(text)).toEqual({
      dryRun: true,
      gracePeriodSeconds: 1,
      propagationPolicy: 'Orphan',
      orphanDependents: undefined,
      preconditions: { uid: 'u', resourceVersion: '7' },
    });
  });

  test('a body overrides the query', () => {
    const body = { orphanDependents: false, preconditions: { uid: 'u' }, unknown: [1] };
    expect(remove('gracePeriodSeconds=x&dryRun=All', body)).toEqual({
      dryRun: false,
      gracePeriodSeconds: undefined,
      propagationPolicy: undefined,
      orphanDependents: false,
      preconditions: { uid: 'u', resourceVersion: undefined },
    });
  });

  test.each([
    [
      { propagationPolicy: 'Orphan', orphanDependents: true },
      '422 DeleteOptions.meta.svc.io "" is invalid: propagationPolicy: Invalid value: "Orphan": ' +
        'orphanDependents and deletionPropagation cannot be both set',
    ],
    [
      { propagationPolicy: 'orphan' },
      '422 DeleteOptions.meta.svc.io "" is invalid: propagationPolicy: Unsupported value: ' +
        '"orphan": supported values: "Foreground", "Background", "Orphan", "nil"',
    ],
    [
      { dryRun: ['x'] },
      '422 DeleteOptions.meta.svc.io "" is invalid: ' +
        'dryRun: Unsupported value: []string{"x"}: supported values: "All"',
    ],
    [{ kind: 'Pod', apiVersion: 'v1' }, '400 no kind "Pod" is registered for version "v1"'],
    [{ apiVersion: 'a/b/c' }, '400 unexpected GroupVersion string: a/b/c'],
    [
      { gracePeriodSeconds: '1' },
      '400 DeleteOptions in version "v1" cannot be handled as a DeleteOptions: json: cannot ' +
        'unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64',
    ],
    [
      { gracePeriodSeconds: 1.5 },
      '400 DeleteOptions in version "v1" cannot be handled as a DeleteOptions: json: cannot ' +
        'unmarshal number 1.5 into Go struct field DeleteOptions.gracePeriodSeconds of type int64',
    ],
    [
      { preconditions: { uid: 7 } },
      '400 DeleteOptions in version "v1" cannot be handled as a DeleteOptions: json: cannot ' +
        'unmarshal number 7 into Go struct field DeleteOptions.preconditions.uid of type types.UID',
    ],
    [
      [1],
      '400 DeleteOptions in version "v1" cannot be handled as a DeleteOptions: json: cannot ' +
        'unmarshal array into Go value of type v1.DeleteOptions',
    ],
  ])('%j', (body, message) => {
    expect(failure(() => remove('', body as JsonValue))).toBe(message);
  });
});
