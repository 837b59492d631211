import {
  dnsLabel,
  dnsSubdomain,
  exceedsBytes,
  type FieldError,
  invalid,
  required,
  tooLong,
} from '@wheelhouse/machinery';

const domainLengthMax = 253;
const pathLengthMax = domainLengthMax + 63 + 1;
const signerLengthMax = domainLengthMax + pathLengthMax + 1;

/** Validates the name of a signer (`example.com/signer-name`). */
export function signerNameErrors(name: string, field: string): FieldError[] {
  if (name === '') return [required(field)];
  const [domain = '', path = '', ...more] = name.split('/');
  if (more.length > 0 || !name.includes('/')) {
    const detail =
      "must be a fully qualified domain and path of the form 'example.com/signer-name'";
    return [invalid(field, name, detail)];
  }
  const tooWide = 'should be a domain with at least two segments separated by dots';
  return [
    ...(exceedsBytes(domain, domainLengthMax) ? [tooLong(field, domainLengthMax)] : []),
    ...firstWrongLabel(domain, field, dnsLabel),
    ...(domain.includes('.') ? [] : [invalid(field, domain, tooWide)]),
    ...firstWrongLabel(path, field, dnsSubdomain),
    ...(exceedsBytes(name, signerLengthMax) ? [tooLong(field, signerLengthMax)] : []),
  ];
}

/** The errors of the first part of a dotted name that breaks the rule. */
function firstWrongLabel(name: string, field: string, rule: typeof dnsLabel): FieldError[] {
  for (const part of name.split('.')) {
    const messages = rule(part);
    if (messages.length === 0) continue;
    const shown = `validating label ${JSON.stringify(part)}`;
    return messages.map((message) => invalid(field, name, `${shown}: ${message}`));
  }
  return [];
}
