import { decodeJson } from '@wheelhouse/codec';
import { builtinKinds } from '@wheelhouse/kinds';
import { dialectNames, dialectOf } from '@wheelhouse/machinery';
import { ConvertError, convertObject, guessForm, runConvert } from '@wheelhouse/svcctl/testing';
import { describe, expect, test } from 'vitest';

const kubernetes = dialectOf('kubernetes');

const configMapJson = `{
  "kind": "ConfigMap",
  "apiVersion": "v1",
  "metadata": {
    "name": "settings",
    "creationTimestamp": null,
    "labels": {
      "tier": "gold"
    }
  },
  "data": {
    "page": "\\u003cb\\u003e \\u0026 more",
    "version": "1.10"
  }
}`;
const configMapYaml = `apiVersion: v1
data:
  page: <b> & more
  version: "1.10"
kind: ConfigMap
metadata:
  creationTimestamp: null
  labels:
    tier: gold
  name: settings
`;

/** Runs `wheelhouse convert` with an input in pieces; returns its output. */
async function run(args: readonly string[], ...input: readonly (string | Buffer)[]) {
  const written: Buffer[] = [];
  async function* pieces() {
    for (const piece of input) yield Buffer.from(piece);
  }
  const write = async (bytes: Buffer | string) => void written.push(Buffer.from(bytes));
  const code = await runConvert({ input: pieces(), write: write }, args);
  return { code, out: Buffer.concat(written) };
}

describe('convert', () => {
  test('CODEC-3: converts between all encodings, byte for byte', async () => {
    const texts = { json: configMapJson, yaml: configMapYaml };
    const { out: protobuf } = await run(['--to=protobuf'], configMapJson);
    expect(protobuf.subarray(0, 21).toString('latin1')).toBe('k8s\0\n\x0f\n\x02v1\x12\tConfigMap');
    const { out: cbor } = await run(['--to=cbor'], configMapYaml);
    expect(cbor.subarray(0, 3)).toEqual(Buffer.from([0xd9, 0xd9, 0xf7]));
    const forms = { ...texts, protobuf, cbor };
    for (const [from, given] of Object.entries(forms)) {
      for (const [to, wanted] of Object.entries(forms)) {
        const { code, out } = await run([`--from=${from}`, '--to', to], given);
        expect({ from, to, code, out: out.toString('latin1') }).toEqual({
          from,
          to,
          code: 0,
          out: Buffer.from(wanted).toString('latin1'),
        });
        expect((await run([`--to=${to}`], given)).out.equals(Buffer.from(wanted))).toBe(true);
      }
    }
  });

  test('CODEC-3: every built-in kind survives each of its encodings', async () => {
    for (const name of dialectNames) {
      const dialect = dialectOf(name);
      for (const { example, kind } of builtinKinds(dialect)) {
        if (example === undefined) continue;
        const input = Buffer.from(JSON.stringify(example()));
        const json = await convertObject(input, { dialect, to: 'json' });
        // The schema of a CustomResourceDefinition has only a JSON form.
        const hasProtobuf = kind !== 'CustomResourceDefinition';
        const formats = hasProtobuf
          ? (['yaml', 'protobuf', 'cbor'] as const)
          : (['yaml', 'cbor'] as const);
        for (const to of formats) {
          const encoded = await convertObject(json, { dialect, to });
          const back = await convertObject(encoded, { dialect, to: 'json' });
          expect(`${kind} ${to} ${back.toString()}`).toBe(`${kind} ${to} ${json.toString()}`);
        }
      }
    }
  });

  test('CODEC-3: kinds of the meta group have a protobuf encoding', async () => {
    const serverAddressByClientCIDRs = [{ clientCIDR: '0.0.0.0/0', serverAddress: 'a:1' }];
    const samples = [
      { kind: 'ListOptions', apiVersion: 'v1', labelSelector: 'a=b', limit: 7 },
      { kind: 'APIVersions', apiVersion: 'v1', versions: ['v1'], serverAddressByClientCIDRs },
      { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', code: 404 },
    ];
    for (const sample of samples) {
      const input = Buffer.from(JSON.stringify(sample));
      const protobuf = await convertObject(input, { dialect: kubernetes, to: 'protobuf' });
      const json = await convertObject(protobuf, { dialect: kubernetes, to: 'json' });
      expect(JSON.parse(json.toString())).toEqual(sample);
    }
  });

  test('CODEC-3: a watch event has a protobuf encoding without a kind in its envelope', async () => {
    const object = { apiVersion: 'example.com/v1', kind: 'Tab', spec: { size: 1 } };
    const event = Buffer.from(`${JSON.stringify({ type: 'ADDED', object }, null, 2)}\n`);
    const protobuf = await convertObject(event, { dialect: kubernetes, to: 'protobuf' });
    const inner = JSON.stringify(object);
    const message = `\n\x05ADDED\x12${String.fromCharCode(inner.length + 2)}\n`;
    const raw = `${message}${String.fromCharCode(inner.length)}${inner}`;
    const head = 'k8s\0\n\x04\n\0\x12\0\x12';
    const whole = `${head}${String.fromCharCode(raw.length)}${raw}\x1a\0"\0`;
    expect(protobuf.toString('latin1')).toBe(whole);
    for (const to of ['yaml', 'cbor', 'protobuf'] as const) {
      const encoded = await convertObject(event, { dialect: kubernetes, to });
      const back = await convertObject(encoded, { dialect: kubernetes, to: 'json' });
      expect(JSON.parse(back.toString())).toEqual({ type: 'ADDED', object });
    }
    const nameless = Buffer.from('k8s\0\n\x04\n\0\x12\0', 'latin1');
    await expect(convertObject(nameless, { dialect: kubernetes, to: 'json' })).rejects.toThrow(
      'the object has no kind',
    );
  });

  test('CODEC-8: 64-bit integers stay exact', async () => {
    const lease = { kind: 'Job', apiVersion: 'batch/v1', metadata: { name: 'j' } };
    const text = JSON.stringify({ ...lease, spec: { activeDeadlineSeconds: 0 } });
    const exact = text.replace(':0}', ':9007199254740993}');
    for (const to of ['json', 'yaml', 'protobuf', 'cbor'] as const) {
      const out = await convertObject(Buffer.from(exact), { dialect: kubernetes, to });
      const json = await convertObject(out, { dialect: kubernetes, to: 'json' });
      expect(json.toString()).toContain('"activeDeadlineSeconds": 9007199254740993');
    }
  });

  test('VER-8: converts an object to another version of its group', async () => {
    const scaler = {
      apiVersion: 'autoscaling/v1',
      kind: 'HorizontalPodAutoscaler',
      metadata: { name: 'h' },
      spec: {
        maxReplicas: 3,
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' },
        targetCPUUtilizationPercentage: 60,
      },
    };
    const newer = await run(['--output-version=autoscaling/v2'], JSON.stringify(scaler));
    const object = JSON.parse(newer.out.toString());
    expect(object).toMatchObject({
      kind: 'HorizontalPodAutoscaler',
      apiVersion: 'autoscaling/v2',
      spec: {
        maxReplicas: 3,
        metrics: [
          {
            type: 'Resource',
            resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 60 } },
          },
        ],
      },
    });
    const older = await run(['--output-version', 'autoscaling/v1', '--to=yaml'], newer.out);
    expect(older.out.toString()).toContain('targetCPUUtilizationPercentage: 60\n');
    await expect(run(['--output-version=apps/v1'], JSON.stringify(scaler))).rejects.toThrow(
      'HorizontalPodAutoscaler in version "autoscaling/v1" cannot be converted to version "apps/v1"',
    );
  });

  test('custom kinds convert between encodings that need no type', async () => {
    const custom = 'apiVersion: example.com/v1\nkind: Widget\nspec:\n  size: 3\n';
    const { out } = await run(['--to=json'], custom);
    expect(decodeJson(out).value).toEqual({
      kind: 'Widget',
      apiVersion: 'example.com/v1',
      spec: { size: 3 },
    });
    expect((await run(['--to=yaml'], out)).out.toString()).toBe(custom);
    await expect(run(['--to=protobuf'], custom)).rejects.toThrow(
      'Widget in version "example.com/v1" has no protobuf form',
    );
  });

  test('large bodies are read in pieces', async () => {
    const data = Object.fromEntries(
      Array.from({ length: 20_000 }, (_, index) => [`key-${index}`, 'x'.repeat(100)]),
    );
    const text = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', data });
    const pieces = Array.from({ length: 50 }, (_, index) =>
      text.slice((index * text.length) / 50, ((index + 1) * text.length) / 50),
    );
    expect(pieces.join('')).toBe(text);
    const { out } = await run(['--to=protobuf'], ...pieces);
    expect(guessForm(out)).toBe('protobuf');
    expect(JSON.parse((await run([], out)).out.toString()).data).toEqual(data);
  });

  test('invalid input is reported in one line', async () => {
    const deep = `{"apiVersion":"v1","kind":"X","a":${'['.repeat(5000)}${']'.repeat(5000)}}`;
    const wrong: readonly (readonly [readonly string[], string | Buffer, RegExp])[] = [
      [[], '', /the input must be an object but is empty/],
      [[], '{"apiVersion":', /the input is not a valid json object: /],
      [[], '[1]', /the input must be an object but is a list/],
      [[], '{}', /the object has no kind/],
      [[], 'kind: ConfigMap', /the object has no apiVersion/],
      [[], 'a: [', /the input is not a valid yaml object: /],
      [[], deep, /the input is not a valid json object: exceeded max depth/],
      [[], Buffer.from('k8s\0\xff\xff', 'latin1'), /the input is not a valid protobuf object: /],
      [['--from=protobuf'], '{}', /does not appear to be a protobuf message/],
      [
        ['--from=cbor'],
        Buffer.from([0xd9, 0xd9, 0xf7, 0xa1]),
        /the input is not a valid cbor object: /,
      ],
      [[], '{"apiVersion":"v1","kind":"ConfigMap","data":[1]}', /cannot unmarshal array/],
      [['--to=xml'], '{}', /--to must be one of json, yaml, protobuf, cbor/],
      [['--dialect=other'], '{}', /--dialect must be one of svc, kubernetes/],
      [['--nope'], '{}', /unknown flag: --nope/],
      [['file'], '{}', /unexpected argument "file"/],
    ];
    for (const [args, input, message] of wrong) {
      await expect(run(args, input)).rejects.toThrow(message);
    }
    await expect(
      convertObject(Buffer.from('{}'), { dialect: kubernetes, to: 'json' }),
    ).rejects.toThrow(ConvertError);
  });
});
