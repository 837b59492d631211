import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import {
  DerError,
  onlyPemBlock,
  parseCertificate,
  pemBytes,
  pemText,
  readRequest,
  type Subject,
} from '@wheelhouse/codec';
import { type Random, randomOf } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import {
  type Attribute,
  authority,
  commonName,
  forgeCertificate,
  forgeRequest,
  nameOf,
  organization,
} from './forged-certificates.ts';
import { mutatedDer, mutatedPem } from './mutated-certificates.ts';

/** The names of a subject that authentication uses. */
type Names = Pick<Subject, 'commonName' | 'organizations'>;

/**
 * OpenSSL must read the same subject from every certificate or request that this server accepts.
 * The inputs are mutated from a seed, which failures print.
 */
const hasOpenssl = spawnSync('openssl', ['version']).status === 0;
if (!hasOpenssl) console.warn('openssl is not installed: nothing is compared with it');

const rounds = Number(process.env['DIFFERENTIAL_ROUNDS'] ?? 400);
/** Maximum number of OpenSSL processes that one test starts; each takes some milliseconds. */
const comparisonsMax = Math.max(24, rounds / 16);

const timeout = 60_000 + rounds * 50;

const person: Attribute = { type: commonName, value: 'mallory' };
const names = [
  nameOf(person, { type: organization, value: 'system:masters' }),
  nameOf({ type: organization, value: 'ä', tag: 0x0c }, person),
  nameOf(person, { type: organization, value: 'dev', tag: 0x13 }, { type: '550406', value: 'DE' }),
  nameOf({ type: organization, value: Buffer.from('ops', 'utf16le').swap16(), tag: 0x1e }, person),
];

type Kind = 'x509' | 'req';

/**
 * The subject according to OpenSSL, each attribute in UTF-8 by its identifier; undefined if it is
 * unreadable.
 */
async function subjectByOpenssl(
  kind: Kind,
  input: Buffer,
  form: 'DER' | 'PEM',
): Promise<Names | undefined> {
  const options = ['-noout', '-subject', '-nameopt', 'utf8,esc_2253,esc_ctrl,sep_multiline,oid'];
  const openssl = spawn('openssl', [kind, '-inform', form, ...options], {
    stdio: ['pipe', 'pipe', 'ignore'],
    timeout: 50_000,
  });
  const closed = once(openssl, 'close');
  // OpenSSL stops reading at the end of what it understands.
  openssl.stdin.on('error', () => {}).end(input);
  const printed = await text(openssl.stdout);
  const [status] = await closed;
  if (status !== 0) return undefined;
  const lines = printed
    .split('\n')
    .slice(1)
    // A plus sign inside a text is escaped.
    .flatMap((line) => line.split(' + '));
  const values = (oid: string) =>
    lines
      .map((line) => /^ *([0-9.]+)=(.*)$/.exec(line))
      .filter((match) => match?.[1] === oid)
      .map((match) => unescaped(match?.[2] ?? ''));
  return { commonName: values('2.5.4.3').at(-1) ?? '', organizations: values('2.5.4.10') };
}

const unescaped = (text: string) =>
  text.replaceAll(/\\([0-9A-F]{2}|.)/g, (_, code: string) =>
    code.length === 2 ? String.fromCharCode(Number.parseInt(code, 16)) : code,
  );

const sorted = ({ commonName: name, organizations }: Names) => [name, ...organizations.toSorted()];

/** Reads mutated inputs, and compares the accepted ones with OpenSSL. */
async function compare(options: {
  readonly kind: Kind;
  readonly form: 'DER' | 'PEM';
  readonly make: (random: Random) => Buffer;
  readonly read: (input: Buffer) => Subject | undefined;
}): Promise<void> {
  const seed = Number(process.env['DIFFERENTIAL_SEED'] ?? Date.now() % 2 ** 31);
  const random = randomOf(seed);
  const seen = new Set<string>();
  let refused = 0;
  for (let round = 0; round < rounds; round++) {
    const input = options.make(random);
    const accepted = options.read(input);
    const where = `seed ${seed}, round ${round}: ${input.toString('base64')}`;
    if (accepted === undefined) {
      refused += 1;
      continue;
    }
    const key = input.toString('latin1');
    if (seen.has(key) || seen.size >= comparisonsMax) continue;
    seen.add(key);
    if (!hasOpenssl) continue;
    const expected = await subjectByOpenssl(options.kind, input, options.form);
    expect(expected && sorted(expected), where).toEqual(sorted(accepted));
  }
  // A mutator whose results are all invalid, or all valid, would compare nothing.
  expect(seen.size, `seed ${seed}`).toBeGreaterThan(10);
  expect(refused, `seed ${seed}`).toBeGreaterThan(10);
}

/** Accepts only errors that describe the input. */
function attempt(read: () => Subject): Subject | undefined {
  try {
    return read();
  } catch (error) {
    const isRefusal = error instanceof DerError || (error as { code?: string }).code !== undefined;
    if (!isRefusal) throw error;
    return undefined;
  }
}

test('TRUST-5: OpenSSL reads the same subject in every accepted request', { timeout }, async () => {
  await compare({
    kind: 'req',
    form: 'DER',
    make: (random) => mutatedDer(forgeRequest({ name: random.pick(names) }), random),
    read: (input) => attempt(() => readRequest(input).subject),
  });
});

test('TRUST-5: OpenSSL reads the same subject in every accepted certificate', {
  timeout,
}, async () => {
  const issued = names.map((subject) =>
    forgeCertificate({ subject, issuer: authority.name, key: 'client', signer: 'authority' }),
  );
  await compare({
    kind: 'x509',
    form: 'DER',
    make: (random) => mutatedDer(random.pick(issued), random),
    read: (input) => attempt(() => parseCertificate(input).subject),
  });
});

test('TRUST-5: OpenSSL picks the same block of every accepted PEM text', { timeout }, async () => {
  const type = 'CERTIFICATE REQUEST';
  const [pem = '', donor = ''] = names.map((name) => pemText(type, forgeRequest({ name })));
  await compare({
    kind: 'req',
    form: 'PEM',
    make: (random) => Buffer.from(mutatedPem(pem, { other: donor, random })),
    read(input) {
      const block = onlyPemBlock(input.toString('latin1'));
      const bytes = block?.type === type ? pemBytes(block) : undefined;
      return bytes && attempt(() => readRequest(bytes).subject);
    },
  });
});
