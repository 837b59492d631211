const alphanumeric = '[a-z0-9]+';
const pathPart = `${alphanumeric}(?:(?:[._]|__|-+)${alphanumeric})*`;
const path = `${pathPart}(?:/${pathPart})*`;
const domainPart = '(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])';
const host = `(?:${domainPart}(?:\\.${domainPart})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?`;
const digest = '[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}';
const reference = new RegExp(
  `^(?:(${host})/)?(${path})(?::([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?:@(${digest}))?$`,
);

const identifier = /^[a-f0-9]{64}$/;
const pathLengthMax = 255;
const imageLengthMax = 4096;
const digestLengths = new Map([
  ['sha256', 64],
  ['sha384', 96],
  ['sha512', 128],
]);

/**
 * The tag of an image's name, `latest` where it has neither tag nor digest; undefined for what is
 * no name of an image, as it is for one that a digest pins.
 */
export function imageTag(image: string): string | undefined {
  if (image.length > imageLengthMax || identifier.test(image)) return undefined;
  const [, , name = '', tag, pin] = reference.exec(inFull(image)) ?? [];
  if (name === '' || name.length > pathLengthMax || !isDigest(pin)) return undefined;
  return tag ?? (pin === undefined ? 'latest' : undefined);
}

function isDigest(pin: string | undefined): boolean {
  if (pin === undefined) return true;
  const [algorithm = '', encoded = ''] = pin.split(':');
  return digestLengths.get(algorithm) === encoded.length && encoded === encoded.toLowerCase();
}

/** With the registry that a short name leaves out: what stands before the path, if a domain. */
function inFull(image: string): string {
  const slash = image.indexOf('/');
  const first = image.slice(0, Math.max(slash, 0));
  const isDomain = first === 'localhost' || /[.:]/.test(first) || first !== first.toLowerCase();
  if (slash < 0) return `registry/library/${image}`;
  return isDomain ? image : `registry/${image}`;
}
