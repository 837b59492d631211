import { dialectOf } from '@wheelhouse/machinery';
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  type Issued,
  issue,
  issueClock,
  showing,
} from '../../../../../test/support/issued-certificate.ts';
import { createClientCertificateAuthenticator } from './client-certificate.ts';

const clientAuth = x509.ExtendedKeyUsage.clientAuth;
const oid = '2.5.29.30';
const tags = { email: 0x81, dns: 0x82, directory: 0xa4, url: 0x86, ip: 0x87 } as const;

function element(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const length = content.length < 128 ? [content.length] : [0x81, content.length];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

type Name = readonly [kind: keyof typeof tags, value: string];

/** An address as `10.0.0.0/255.0.0.0` or in hexadecimal octets; other names as text. */
function subtree([kind, value]: Name): Buffer {
  const octets = (text: string) => Buffer.from(text.split(/[./]/).map(Number));
  const hex = /^[0-9a-f]+$/.test(value) ? Buffer.from(value, 'hex') : octets(value);
  return element(0x30, element(tags[kind], kind === 'ip' ? hex : Buffer.from(value)));
}

interface Constraints {
  readonly permitted?: readonly Name[];
  readonly excluded?: readonly Name[];
}

function extension({ permitted, excluded }: Constraints, critical = true): x509.Extension {
  const lists = [
    ...(permitted === undefined ? [] : [element(0xa0, ...permitted.map(subtree))]),
    ...(excluded === undefined ? [] : [element(0xa1, ...excluded.map(subtree))]),
  ];
  return new x509.Extension(oid, critical, element(0x30, ...lists));
}

let root: Issued;
beforeAll(async () => {
  root = await issue({ subject: 'CN=root', authority: true, toDays: 100 });
});

function authenticatorOf(authority: Issued) {
  return createClientCertificateAuthenticator({
    bundlePem: authority.certificate.toString('pem'),
    clock: issueClock,
    dialect: dialectOf('svc'),
  });
}

const alternatives = (names: readonly Name[]) =>
  new x509.SubjectAlternativeNameExtension(
    names.map(([type, value]) => ({ type, value }) as x509.JsonGeneralName),
  );

/** Presents a leaf with these names under an intermediate with these extensions. */
async function chainOf(more: x509.Extension[], names: readonly Name[]) {
  const middle = await issue({ subject: 'CN=middle', issuer: root, authority: true, more });
  const leaf = await issue({
    subject: 'CN=amy',
    issuer: middle,
    usages: [clientAuth],
    more: names.length === 0 ? [] : [alternatives(names)],
  });
  return authenticatorOf(root).authenticate(showing(leaf, middle));
}

describe('AUTHN-2: name constraints', () => {
  test.each<[string, Constraints, readonly Name[]]>([
    ['no names', { permitted: [['dns', 'a.example']] }, []],
    ['a permitted name', { permitted: [['dns', 'a.example']] }, [['dns', 'a.example']]],
    ['a subdomain in another case', { permitted: [['dns', 'Example']] }, [['dns', 'x.A.eXample']]],
    [
      'a subdomain of a dotted domain',
      { permitted: [['dns', '.example']] },
      [['dns', 'x.example']],
    ],
    ['any name under the empty domain', { permitted: [['dns', '']] }, [['dns', 'x.y']]],
    [
      'a name in one of several subtrees',
      {
        permitted: [
          ['dns', 'a'],
          ['dns', 'b'],
        ],
      },
      [['dns', 'x.b']],
    ],
    ['a name of another kind', { permitted: [['email', 'a.example']] }, [['dns', 'b.example']]],
    ['a name that is not excluded', { excluded: [['dns', 'b.example']] }, [['dns', 'ab.example']]],
    ['a mailbox', { permitted: [['email', 'x@a.example']] }, [['email', 'x@A.example']]],
    [
      'a mailbox on a permitted host',
      { permitted: [['email', 'a.example']] },
      [['email', 'any@a.example']],
    ],
    ['an address', { permitted: [['ip', '10.0.0.0/255.0.0.0']] }, [['ip', '10.9.8.7']]],
    ['a URI', { permitted: [['url', '.example']] }, [['url', 'https://u@a.example:80/x?y']]],
    ['a URI of an address', { permitted: [['dns', 'a']] }, [['url', 'https://10.0.0.1/']]],
  ])('AUTHN-2: %s is accepted', async (_, constraints, names) => {
    expect(await chainOf([extension(constraints)], names)).toMatchObject({ name: 'amy' });
  });

  test.each<[string, Constraints, readonly Name[]]>([
    ['a name that is not permitted', { permitted: [['dns', 'a.example']] }, [['dns', 'b.example']]],
    [
      'a second name that is not permitted',
      { permitted: [['dns', 'a']] },
      [
        ['dns', 'x.a'],
        ['dns', 'x.b'],
      ],
    ],
    ['a parent domain', { permitted: [['dns', 'a.example']] }, [['dns', 'example']]],
    ['a name with the same suffix', { permitted: [['dns', 'a.example']] }, [['dns', 'xa.example']]],
    ['a dotted domain itself', { permitted: [['dns', '.example']] }, [['dns', 'example']]],
    ['an excluded name', { excluded: [['dns', 'a.example']] }, [['dns', 'A.example']]],
    [
      'a subdomain of an excluded name',
      { excluded: [['dns', 'a.example']] },
      [['dns', 'x.a.example']],
    ],
    [
      'a name that is both permitted and excluded',
      { permitted: [['dns', 'example']], excluded: [['dns', 'a.example']] },
      [['dns', 'a.example']],
    ],
    ['a wildcard', { permitted: [['dns', 'a.example']] }, [['dns', '*.example']]],
    ['a malformed domain', { excluded: [['email', 'x']] }, [['dns', 'a..example']]],
    ['an absolute domain', { excluded: [['email', 'x']] }, [['dns', 'example.']]],
    ['another mailbox', { permitted: [['email', 'x@a.example']] }, [['email', 'X@a.example']]],
    ['another mail host', { permitted: [['email', 'a.example']] }, [['email', 'x@b.example']]],
    ['a host as a mailbox', { permitted: [['email', 'a.example']] }, [['email', 'a.example']]],
    ['another address', { permitted: [['ip', '10.0.0.0/255.0.0.0']] }, [['ip', '11.0.0.1']]],
    ['an excluded address', { excluded: [['ip', '10.0.0.0/255.0.0.0']] }, [['ip', '10.0.0.1']]],
    ['an address of the other family', { permitted: [['ip', '0.0.0.0/0.0.0.0']] }, [['ip', '::1']]],
    [
      'another host',
      { permitted: [['url', 'a.example']] },
      [['url', 'https://b.example/a.example']],
    ],
    [
      'a permitted host as user info',
      { permitted: [['url', 'a']] },
      [['url', 'https://x.a@b.example/']],
    ],
    ['a URI of an address', { excluded: [['url', 'a']] }, [['url', 'https://10.0.0.1/']]],
    ['a URI without a host', { permitted: [['url', 'a']] }, [['url', 'urn:x:y']]],
  ])('AUTHN-2: %s is rejected', async (_, constraints, names) => {
    await expect(chainOf([extension(constraints)], names)).rejects.toThrow(
      'is not authorized to sign for this name',
    );
  });

  test('AUTHN-2: constraints of the root and of intermediates apply', async () => {
    const more = [extension({ permitted: [['dns', 'a.example']] })];
    const limited = await issue({ subject: 'CN=limited', authority: true, more });
    const middle = await issue({ subject: 'CN=middle', issuer: limited, authority: true });
    const names = [alternatives([['dns', 'b.example']])];
    const options = { subject: 'CN=eve', usages: [clientAuth], more: names };
    const leaf = await issue({ ...options, issuer: middle });
    const refused = 'is not authorized to sign for this name';
    const authenticator = authenticatorOf(limited);
    expect(() => authenticator.authenticate(showing(leaf, middle))).toThrow(refused);
    const named = await issue({ ...options, subject: 'CN=m', issuer: limited, authority: true });
    const below = await issue({ subject: 'CN=eve', issuer: named, usages: [clientAuth] });
    expect(() => authenticator.authenticate(showing(below, named))).toThrow(refused);
  });

  test('AUTHN-2: a critical constraint that cannot be evaluated is rejected', async () => {
    const directory: Constraints = { permitted: [['directory', '0\0']] };
    await expect(chainOf([extension(directory)], [])).rejects.toThrow(`extension ${oid}`);
    expect(await chainOf([extension(directory, false)], [])).toMatchObject({ name: 'amy' });
    const unknown = new x509.Extension('1.2.3.4', true, element(0x05));
    await expect(chainOf([unknown], [])).rejects.toThrow('critical extension 1.2.3.4');
  });

  test('AUTHN-2: unknown critical alternative names are rejected', async () => {
    const names = element(0x30, element(0x88, Buffer.from([0x2a, 3])));
    for (const critical of [true, false]) {
      const more = [new x509.Extension('2.5.29.17', critical, names)];
      const leaf = await issue({ subject: 'CN=amy', issuer: root, usages: [clientAuth], more });
      const authenticate = () => authenticatorOf(root).authenticate(showing(leaf));
      if (critical) expect(authenticate).toThrow('critical extension 2.5.29.17');
      else expect(authenticate()).toMatchObject({ name: 'amy' });
    }
  });

  test.each<[string, Buffer]>([
    ['nothing', element(0x30)],
    ['empty lists', element(0x30, element(0xa0), element(0xa1))],
    ['an unknown list', element(0x30, element(0xa2, subtree(['dns', 'a'])))],
    ['lists out of order', element(0x30, element(0xa1, subtree(['dns', 'a'])), element(0xa0))],
    ['a subtree without a name', element(0x30, element(0xa0, element(0x30)))],
    ['a malformed domain', element(0x30, element(0xa0, subtree(['dns', 'a..b'])))],
    ['two dots', element(0x30, element(0xa0, subtree(['dns', '..b'])))],
    ['a non-ASCII domain', element(0x30, element(0xa0, subtree(['dns', 'é'])))],
    ['a mask with holes', element(0x30, element(0xa0, subtree(['ip', '0a000000ff00ff00'])))],
    ['half an address', element(0x30, element(0xa0, subtree(['ip', '0a0000'])))],
    ['an address as host', element(0x30, element(0xa0, subtree(['url', '10.0.0.1'])))],
    ['a malformed mailbox', element(0x30, element(0xa0, subtree(['email', '@a'])))],
    [
      'trailing data',
      Buffer.concat([element(0x30, element(0xa0, subtree(['dns', 'a']))), element(0x05)]),
    ],
    ['malformed DER', Buffer.from([0x30, 0x85])],
  ])('AUTHN-2: malformed constraints are rejected: %s', async (_, value) => {
    await expect(chainOf([new x509.Extension(oid, false, value)], [])).rejects.toThrow();
  });

  test('AUTHN-2: a repeated extension is rejected', async () => {
    const twice = [
      extension({ excluded: [['dns', 'a']] }),
      extension({ excluded: [['dns', 'b']] }),
    ];
    await expect(chainOf(twice, [])).rejects.toThrow('given twice');
  });
});
