import {
  type FieldError,
  invalid,
  parseIpAddress,
  parseIpBlock,
  specialRanges,
} from '@wheelhouse/machinery';

/** Validates an IP address of either family. */
export function validateIp(field: string, text: string): FieldError[] {
  if (parseIpAddress(text) !== undefined) return [];
  const detail = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
  return [invalid(field, text, detail)];
}

/** Validates a CIDR block of either family. */
export function validateCidr(field: string, text: string): FieldError[] {
  if (parseIpBlock(text) !== undefined) return [];
  const detail = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';
  return [invalid(field, text, detail)];
}

/** Rejects unspecified, loopback, and link-local addresses. */
export function validateNonSpecialIp(field: string, text: string): FieldError[] {
  const address = parseIpAddress(text);
  if (address === undefined) return [invalid(field, text, 'must be a valid IP address')];
  const details: string[] = [];
  if (specialRanges.isUnspecified(address)) details.push(`may not be unspecified (${text})`);
  if (specialRanges.isLoopback(address)) {
    details.push('may not be in the loopback range (127.0.0.0/8, ::1/128)');
  }
  if (specialRanges.isLinkLocalUnicast(address)) {
    details.push('may not be in the link-local range (169.254.0.0/16, fe80::/10)');
  }
  if (specialRanges.isLinkLocalMulticast(address)) {
    details.push('may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)');
  }
  return details.map((detail) => invalid(field, text, detail));
}
