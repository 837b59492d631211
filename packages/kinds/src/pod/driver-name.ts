import { dnsSubdomain, type FieldError, invalid, required, tooLong } from '@wheelhouse/machinery';

const lengthMax = 63;

/** The name of a CSI driver: a subdomain in any case, short. */
export function driverName(name: string, field: string): FieldError[] {
  return [
    ...(name === '' ? [required(field)] : []),
    ...(name.length > lengthMax ? [tooLong(field, lengthMax)] : []),
    ...dnsSubdomain(name.toLowerCase()).map((message) => invalid(field, name, message)),
  ];
}
