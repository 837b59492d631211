import { type JsonObject, runInOnePiece } from '@wheelhouse/machinery';
import { schemaFromOpenApi } from '@wheelhouse/schema';
import { expect, test } from 'vitest';
import { checkRules } from './check-rules.ts';

function complaintsAbout(rule: JsonObject, schema: JsonObject = {}): readonly string[] {
  const props = { type: 'object', ...schema, 'x-kubernetes-validations': [rule] };
  const at = { path: 'schema', blocked: () => false, unchanged: false };
  return runInOnePiece(checkRules({ ...at, schema: schemaFromOpenApi(props) })).map(
    ({ field, message }) => `${field}: ${message}`,
  );
}

const path = 'schema.x-kubernetes-validations[0]';

test('the size of a name is estimated as if it could fill a request', () => {
  const rule = (length: number) => `self.metadata.name.matches('${'a'.repeat(length)}')`;
  expect(complaintsAbout({ rule: rule(120) })).toEqual([]);
  expect(complaintsAbout({ rule: rule(132) })).toEqual([
    expect.stringContaining(
      `${path}.rule: Forbidden: estimated rule cost exceeds budget by factor of 1.038091x`,
    ),
  ]);
  const bounded = { type: 'string', maxLength: 253 };
  const text = { type: 'string' };
  const metadata = { type: 'object', properties: { name: bounded, generateName: bounded } };
  const properties = { apiVersion: text, kind: text, metadata };
  expect(complaintsAbout({ rule: rule(132) }, { properties })).toEqual([]);
});

test('rules have no authorizer, although its functions exist', () => {
  const rule = "type(authorizer.group('').resource('').fieldSelector('')) == string";
  const detail = "compilation failed: ERROR: <input>:1:6: undeclared reference to 'authorizer'";
  const [wrong = '', ...more] = complaintsAbout({ rule });
  expect(wrong).toContain(`${path}.rule: Invalid value: `);
  expect(wrong).toContain(detail);
  expect(wrong).not.toContain("'group'");
  expect(more).toEqual([]);
  const message = complaintsAbout({
    rule: 'self == oldSelf',
    messageExpression: `${rule} ? 'a' : 'b'`,
  });
  expect(message).toEqual([expect.stringContaining(`${path}.messageExpression: Invalid value: `)]);
  expect(message[0]).toContain(`messageExpression ${detail}`);
});
