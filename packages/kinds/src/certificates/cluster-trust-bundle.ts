import { pemBlocks, pemBytes, readCertificate } from '@wheelhouse/codec';
import {
  asPrefix,
  type Dialect,
  dnsSubdomain,
  type FieldError,
  invalid,
  type NameRule,
  pathSegment,
  ruleErrors,
  tooLong,
} from '@wheelhouse/machinery';
import { column, nameColumn } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { ClusterTrustBundle } from '../gen/types/certificates/v1alpha1.ts';
import type { ResourceDef, Stored } from '../resource-def.ts';
import { immutable } from '../rules/checks.ts';
import { signerNameErrors } from './signer-name.ts';

/** A self-signed certificate authority for examples, in PEM; its private key is discarded. */
export const exampleAuthority = `-----BEGIN CERTIFICATE-----
MIIBfDCCASGgAwIBAgIUUvxT7pWZni9rQtoO3qVCrFj5Ti4wCgYIKoZIzj0EAwIw
EjEQMA4GA1UEAwwHZXhhbXBsZTAgFw0yNjExMjMxNTQ0MzBaGA8yMTI2MTAzMDE1
NDQzMFowEjEQMA4GA1UEAwwHZXhhbXBsZTBZMBMGByqGSM49AgEGCCqGSM49AwEH
A0IABOE6WSEiJanbuQ3rGZ/SqCPKAXNg0juCYo1OGJi9yuMwZyc9Bj/V8I2bLp0C
mNso6UgISD1v9MJSlft4myjCKtejUzBRMB0GA1UdDgQWBBRKDKtdyrGXxnZHndyq
iacUwcxbhTAfBgNVHSMEGDAWgBRKDKtdyrGXxnZHndyqiacUwcxbhTAPBgNVHRMB
Af8EBTADAQH/MAoGCCqGSM49BAMCA0kAMEYCIQDvmmp6Tn7hn9UlG22tMPJqbz9e
7CDJH4QU4SY+QQkR2AIhAMBuy1tHUQCku1RU+3IRSYT7Ng6OtUkEOYoi8DQvJNnv
-----END CERTIFICATE-----
`;

/** ClusterTrustBundle: trusted certificate authorities, possibly of one signer. */
export function clusterTrustBundle(dialect: Dialect): ResourceDef {
  const signer = (object: Stored<ClusterTrustBundle>) => signerOf(object) || '<none>';
  const signerColumn = column('SignerName', signer, {
    description: 'Signer of the certificates that the bundle verifies.',
  });
  const kind = 'ClusterTrustBundle';
  const def = defineKind({
    dialect,
    facts: 'certificates',
    kind,
    scope: 'Cluster',
    versions: [{ version: 'v1alpha1', columns: [nameColumn, signerColumn] }],
    storage: { fieldsOf: (object) => ({ 'spec.signerName': signerOf(object) }) },
    strategy: {
      extraMetadataChecks: { '': ['whole', 'change'] },
      validateName: pathSegment,
      nameRules,
      validateCreate: (_, object) => [
        ...validateSigner(object),
        ...validateBundle(bundleOf(object)),
      ],
      validateUpdate: (_, object, old) => [
        ...validateNames(object),
        ...validateSigner(object),
        // kube-apiserver does not validate an unchanged bundle.
        ...(bundleOf(object) === bundleOf(old) ? [] : validateBundle(bundleOf(object))),
        ...immutable('spec.signerName', signerOf(object), signerOf(old)),
      ],
      allowUnconditionalUpdate: false,
    },
    example: () => ({ spec: { trustBundle: exampleAuthority } }),
  });
  return { ...def, gate: kind };
}

const signerOf = (object: Stored<ClusterTrustBundle>) => object.spec?.signerName ?? '';

function nameRules(object: Stored<ClusterTrustBundle>) {
  const signer = signerOf(object);
  const ruleWith =
    (rule: NameRule): NameRule =>
    (text) =>
      trustBundleNameProblems(text, signer, rule);
  return { validateName: ruleWith(dnsSubdomain), validatePrefix: ruleWith(asPrefix(dnsSubdomain)) };
}

/** Validates the names of a changed bundle, which may name another signer. */
function validateNames(object: Stored<ClusterTrustBundle>): FieldError[] {
  const { name = '', generateName = '' } = object.metadata;
  const { validateName, validatePrefix } = nameRules(object);
  return [
    ...(generateName === ''
      ? []
      : ruleErrors('metadata.generateName', generateName, validatePrefix)),
    ...(name === '' ? [] : ruleErrors('metadata.name', name, validateName)),
  ];
}

function validateSigner(object: Stored<ClusterTrustBundle>): FieldError[] {
  const signer = signerOf(object);
  return signer === '' ? [] : signerNameErrors(signer, 'spec.signerName');
}

/**
 * Validates the name of a bundle. A signer's bundle is named by the signer, with `:` for `/`,
 * followed by `:` and a DNS subdomain.
 */
export function trustBundleNameProblems(
  name: string,
  signer: string,
  rule: (name: string) => readonly string[] = dnsSubdomain,
): readonly string[] {
  if (signer === '') {
    return name.includes(':')
      ? ['ClusterTrustBundle without signer name must not have ":" in its name']
      : rule(name);
  }
  const prefix = `${signer.replaceAll('/', ':')}:`;
  return name.startsWith(prefix)
    ? rule(name.slice(prefix.length))
    : [`ClusterTrustBundle for signerName ${signer} must be named with prefix ${prefix}`];
}

const bundleBytesMax = 1024 * 1024;

function validateBundle(bundle: string): FieldError[] {
  const path = 'spec.trustBundle';
  if (Buffer.byteLength(bundle) > bundleBytesMax) return [tooLong(path, bundleBytesMax)];
  const fault = (detail: string) => invalid(path, '<value omitted>', detail);
  const blocks = pemBlocks(bundle);
  const errors = blocks.flatMap((block, index) => {
    const problem = blockProblem(block);
    return problem === undefined ? [] : [fault(`entry ${index} ${problem}`)];
  });
  if (errors.length > 0) return errors;
  if (blocks.length === 0) return [fault('at least one trust anchor must be provided')];
  const indices = new Map<string, number[]>();
  for (const [index, block] of blocks.entries()) {
    const key = pemBytes(block)?.toString('base64') ?? '';
    const repeats = indices.get(key);
    if (repeats === undefined) indices.set(key, [index]);
    else repeats.push(index);
  }
  return [...indices.values()]
    .filter((repeats) => repeats.length > 1)
    .map((repeats) => fault(`duplicate trust anchor (indices [${repeats.join(' ')}])`));
}

/** Returns the error of a PEM block that is not a certificate of an authority. */
function blockProblem(block: ReturnType<typeof pemBlocks>[number]): string | undefined {
  if (block.type !== 'CERTIFICATE') return `has bad block type: ${block.type}`;
  if (/\n[^\n]*:/.test(block.text)) return 'has PEM block headers';
  const der = pemBytes(block);
  try {
    if (der === undefined) return 'does not parse as X.509';
    return readCertificate(der).isAuthority === true ? undefined : 'does not have the CA bit set';
  } catch {
    return 'does not parse as X.509';
  }
}

const bundleOf = (object: Stored<ClusterTrustBundle>) => object.spec?.trustBundle ?? '';
