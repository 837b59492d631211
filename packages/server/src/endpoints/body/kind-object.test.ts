import { BoundedTexts } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { Complaints, reportComplaints } from './kind-object.ts';

const frame = 'strict decoding error: ';

/** Complaints about members; a path that starts with `=` denotes a duplicate. */
function complaintsOf(...paths: string[]): Complaints {
  const complaints = new Complaints();
  for (const path of paths) {
    if (path.startsWith('=')) complaints.duplicate(path.slice(1));
    else complaints.unknown(path);
  }
  return complaints;
}

describe('FV-2: reports unknown and duplicate fields', () => {
  const report = (fieldValidation: 'Ignore' | 'Warn' | 'Strict', ...paths: string[]) => {
    const warnings = new BoundedTexts('warning');
    const complaints = complaintsOf(...paths);
    const fail = (message: string) => new Error(message);
    reportComplaints({ warnings }, { complaints, fieldValidation, fail });
    return warnings.list;
  };

  test('is nothing with Ignore', () => {
    expect(report('Ignore', 'a')).toEqual([]);
  });

  test('is a warning each with Warn', () => {
    expect(report('Warn', 'spec.a', '=spec.b')).toEqual([
      'unknown field "spec.a"',
      'duplicate field "spec.b"',
    ]);
  });

  test('is one refusal with Strict', () => {
    expect(() => report('Strict', 'spec.a', '=spec.b')).toThrow(
      `${frame}unknown field "spec.a", duplicate field "spec.b"`,
    );
    expect(report('Strict')).toEqual([]);
  });

  test('names the field, with YAML’s wording for duplicate keys', () => {
    const complaints = new Complaints();
    complaints.unknown('[0].x', 'json patch ');
    complaints.repeated(['line 4: key "a" already set in map']);
    expect(complaints.strictText).toBe(
      `${frame}yaml: unmarshal errors:\n  line 4: key "a" already set in map, ` +
        'json patch unknown field "[0].x"',
    );
  });

  test('TRUST-3: is bounded and counts the rest', () => {
    const many = Array.from({ length: 5000 }, (_, index) => `field${index}`);
    const { strictText } = complaintsOf(...many);
    expect(strictText.length).toBeLessThan(70_000);
    expect(strictText).toMatch(/, and 4900 more errors$/);
  });
});

describe('FV-2: the order of typed decoding errors', () => {
  const ordered = (text: string, ...paths: string[]) => {
    const complaints = complaintsOf(...paths);
    complaints.inTypedOrder(Buffer.from(text));
    return complaints.strictText.slice(frame.length).split(', ');
  };

  test('is that of the text, with duplicates where they repeat', () => {
    expect(ordered('{"b":1,"x":2,"a":3,"x":4}', 'a', 'b', '=x')).toEqual([
      'unknown field "b"',
      'unknown field "a"',
      'duplicate field "x"',
    ]);
  });

  test('skips the content of an unknown or duplicate field', () => {
    expect(ordered('{"a":{"b":1,"b":2},"a":3}', 'a', '=a.b', '=a')).toEqual(['unknown field "a"']);
    expect(ordered('{"ab":1,"ab":2,"a":3}', 'a', '=ab')).toEqual([
      'duplicate field "ab"',
      'unknown field "a"',
    ]);
  });

  test('is by name for YAML, with items by index', () => {
    const text = 'spec: 1';
    const paths = ['spec.z', 'spec.list[10].a', 'spec.list[9].b', 'spec.list[9]'];
    expect(ordered(text, ...paths)).toEqual(
      ['spec.list[9]', 'spec.list[9].b', 'spec.list[10].a', 'spec.z'].map(
        (path) => `unknown field "${path}"`,
      ),
    );
  });
});
