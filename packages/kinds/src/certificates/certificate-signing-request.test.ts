import { expect, test } from 'vitest';
import { createErrors, kindOf, updateErrors } from '../kind.suite.ts';

const def = kindOf('CertificateSigningRequest');
const example = def.example?.() ?? {};
const specErrors = (change: object) =>
  createErrors(def, { ...example, spec: { ...(example['spec'] as object), ...change } });
const field = 'spec.signerName: Invalid value:';
const label = /must consist of lower case alphanumeric characters/;

test.each([
  ['a.example/b', []],
  ['', ['spec.signerName: Required value']],
  ['example.com', [expect.stringContaining(`${field} "example.com": must be a fully qualified`)]],
  ['a.example/b/c', [expect.stringContaining(`${field} "a.example/b/c": must be a fully`)]],
  [
    'example/b',
    [`${field} "example": should be a domain with at least two segments separated by dots`],
  ],
  ['a.Example/b', [expect.stringMatching(label)]],
  ['a.example/-', [expect.stringMatching(label)]],
  [`${'a.'.repeat(130)}example/b`, ['spec.signerName: Too long: may not be more than 253 bytes']],
])('signer %j', (signerName, expected) => {
  expect(specErrors({ signerName })).toEqual(expected);
});

test('usages must be supported and unique', () => {
  const errors = specErrors({ usages: ['odd', 'odd'] });
  expect(errors).toHaveLength(3);
  expect(errors[2]).toBe('spec.usages[1]: Duplicate value: "odd"');
  expect(specErrors({ request: '' })).toEqual([
    'spec.request: Invalid value: []byte(nil): PEM block type must be CERTIFICATE REQUEST',
  ]);
});

const pem = (type: string, text: string) =>
  btoa(`-----BEGIN ${type}-----\n${text}-----END ${type}-----\n`);
const shown = 'status.certificate: Invalid value: "<certificate data>":';

test.each([
  [btoa('x'), 'must contain at least one CERTIFICATE PEM block'],
  [pem('KEY', 'AAAA\n'), 'only CERTIFICATE PEM blocks are allowed, found "KEY"'],
  [pem('CERTIFICATE', 'A: b\n\nAAAA\n'), 'no PEM block headers are permitted'],
  [pem('CERTIFICATE', ''), 'found CERTIFICATE PEM block containing 0 certificates'],
  [pem('CERTIFICATE', 'AAAA\n'), 'x509: malformed certificate'],
])('certificate %j', (certificate, problem) => {
  const change = { from: example, to: { ...example, status: { certificate } } };
  expect(updateErrors(def, change, { subresource: 'status' })).toEqual([`${shown} ${problem}`]);
});

test('an approval or denial must be True, unique, and exclusive', () => {
  const decided = (conditions: object[]) => ({
    from: example,
    to: { ...example, status: { conditions: conditions as never } },
  });
  const yes = { type: 'Approved', status: 'True' };
  const approvalErrors = (conditions: object[]) =>
    updateErrors(def, decided(conditions), { subresource: 'approval' });
  expect(approvalErrors([yes])).toEqual([]);
  expect(approvalErrors([yes, { type: 'Denied', status: 'True' }])).toEqual([
    'status.conditions[1].type: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive',
  ]);
  expect(approvalErrors([{ type: 'Failed', status: 'False' }, {}])).toEqual([
    'status.conditions[0].status: Unsupported value: "False": supported values: "True"',
    'status.conditions[1].type: Required value',
    'status.conditions[1].status: Required value',
  ]);
  expect(approvalErrors([yes, yes])).toEqual([
    'status.conditions[1].type: Duplicate value: "Approved"',
  ]);
});
