import {
  type AlternativeName,
  attributeOids,
  DerError,
  onlyPemBlock,
  pemBytes,
  readRequest,
} from '@wheelhouse/codec';
import {
  formatIpAddress,
  humanDuration,
  type JsonObject,
  parseIpAddress,
} from '@wheelhouse/machinery';
import { CliError } from '../io.ts';
import { listAt, nameOf, objectAt, pairsText, textAt } from '../objects.ts';
import { longTime } from './pod-template.ts';
import type { RelatedDescriber } from './related.ts';

const describeRequest: RelatedDescriber = (request) => {
  const [facts, meta] = [objectAt(request, 'spec'), objectAt(request, 'metadata')];
  const signer = textAt(facts, 'signerName');
  const seconds = facts['expirationSeconds'];
  const { subject, names } = contentsOf(textAt(facts, 'request'));
  return [
    `Name:\t${nameOf(request)}`,
    `Labels:\t${pairsText(objectAt(meta, 'labels'))}`,
    `Annotations:\t${pairsText(objectAt(meta, 'annotations'))}`,
    `CreationTimestamp:\t${longTime(textAt(meta, 'creationTimestamp'))}`,
    `Requesting User:\t${textAt(facts, 'username')}`,
    ...(signer === '' ? [] : [`Signer:\t${signer}`]),
    ...(typeof seconds === 'number'
      ? [`Requested Duration:\t${humanDuration(seconds * 1000)}`]
      : []),
    `Status:\t${statusText(request)}`,
    'Subject:',
    `\tCommon Name:\t${subject.commonName}`,
    `\tSerial Number:\t${subject.attributes.get(attributeOids.serialNumber)?.at(-1) ?? ''}`,
    ...subjectTitles.flatMap(([title, oid]) => nameLines(title, subject.attributes.get(oid) ?? [])),
    ...(names.size === 0 ? [] : ['Subject Alternative Names:']),
    ...Object.values(alternativeTitles).flatMap((title) =>
      nameLines(title, names.get(title) ?? []),
    ),
  ];
};

const nameLines = (title: string, names: readonly string[]): string[] =>
  names.map((name, at) => `\t${at === 0 ? `${title}:` : ''}\t${name}`);

/** The titles and identifiers of a subject's attributes with several values, in kubectl's order. */
const subjectTitles: readonly (readonly [title: string, oid: string])[] = [
  ['Organization', attributeOids.organization],
  ['Organizational Unit', attributeOids.organizationalUnit],
  ['Country', attributeOids.country],
  ['Locality', attributeOids.locality],
  ['Province', attributeOids.province],
  ['StreetAddress', attributeOids.streetAddress],
  ['PostalCode', attributeOids.postalCode],
];

/** The titles of alternative names, in kubectl's order. */
const alternativeTitles: Readonly<Record<AlternativeName['kind'], string>> = {
  dns: 'DNS Names',
  email: 'Email Addresses',
  uri: 'URIs',
  ip: 'IP Addresses',
};

/** The names in a PKCS#10 request, encoded as PEM in base64. Throws CliError if it is malformed. */
function contentsOf(encoded: string): {
  readonly subject: ReturnType<typeof readRequest>['subject'];
  readonly names: ReadonlyMap<string, readonly string[]>;
} {
  try {
    const block = onlyPemBlock(Buffer.from(encoded, 'base64').toString('latin1'));
    const der = block === undefined ? undefined : pemBytes(block);
    if (der === undefined) throw new DerError('PEM block type must be CERTIFICATE REQUEST');
    const { subject, alternativeNames } = readRequest(der);
    const names = new Map<string, string[]>();
    for (const { kind, content } of alternativeNames) {
      const title = alternativeTitles[kind];
      const text = kind === 'ip' ? addressText(content) : content.toString('latin1');
      names.set(title, [...(names.get(title) ?? []), text]);
    }
    return { subject, names };
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    throw new CliError(`Error parsing CSR: ${error.message}`);
  }
}

function addressText(bytes: Buffer): string {
  const text =
    bytes.length === 4 ? [...bytes].join('.') : bytes.toString('hex').match(/.{4}/g)?.join(':');
  return formatIpAddress(parseIpAddress(text ?? '')!);
}

function statusText(request: JsonObject): string {
  const types = new Set(listAt(request, 'status', 'conditions').map(({ type }) => type));
  const decision = types.has('Denied') ? 'Denied' : types.has('Approved') ? 'Approved' : 'Pending';
  const isIssued = textAt(request, 'status', 'certificate') !== '';
  return `${decision}${types.has('Failed') ? ',Failed' : ''}${isIssued ? ',Issued' : ''}`;
}

/** The describer of requests for certificates, by kind, with the stem of the group. */
export const certificateDescribers: Readonly<Record<string, RelatedDescriber>> = {
  'certificates/CertificateSigningRequest': describeRequest,
};
