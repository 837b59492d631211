import {
  dnsSubdomain,
  type FieldError,
  invalid,
  parseGoUrl,
  required,
} from '@wheelhouse/machinery';

const urlForm = '; desired format: https://host[/path]';

/** Validates the URL of a webhook, which must be https. */
export function webhookUrlErrors(text: string, field: string): FieldError[] {
  const url = parseGoUrl(text);
  if (typeof url === 'string') {
    return [required(field, `url must be a valid URL: ${url}${urlForm}`)];
  }
  const errors: FieldError[] = [];
  const refuse = (value: string, detail: string) => errors.push(invalid(field, value, detail));
  const { scheme, user, fragment, query } = url;
  if (scheme !== 'https') refuse(scheme, `'https' is the only allowed URL scheme${urlForm}`);
  if (url.host === '') refuse('', `host must be specified${urlForm}`);
  if (user !== undefined) refuse(user, 'user information is not permitted in the URL');
  if (fragment !== '') refuse(fragment, 'fragments are not permitted in the URL');
  if (query !== '') refuse(query, 'query parameters are not permitted in the URL');
  return errors;
}

/** The Service in front of a webhook. */
interface WebhookService {
  readonly name: string;
  readonly namespace: string;
  readonly path: string;
  readonly port: number;
}

/** Validates the reference to a webhook's Service. */
export function webhookServiceErrors(service: WebhookService, at: string): FieldError[] {
  const { port } = service;
  const isPort = port >= 1 && port <= 65_535;
  const why = 'port is not valid: must be between 1 and 65535, inclusive';
  return [
    ...(['name', 'namespace'] as const)
      .filter((name) => service[name] === '')
      .map((name) => required(`${at}.${name}`, `service ${name} is required`)),
    ...(isPort ? [] : [invalid(`${at}.port`, port, why)]),
    ...pathErrors(service.path, `${at}.path`),
  ];
}

function pathErrors(path: string, field: string): FieldError[] {
  if (path === '' || path === '/') return [];
  if (path === '//') return [invalid(field, path, 'segment[0] may not be empty')];
  const errors = path.startsWith('/') ? [] : [invalid(field, path, "must start with a '/'")];
  const steps = path.slice(1).replace(/\/$/, '').split('/');
  return [
    ...errors,
    ...steps.flatMap((step, index) =>
      step === ''
        ? [invalid(field, path, `segment[${index}] may not be empty`)]
        : dnsSubdomain(step).map((message) =>
            invalid(field, path, `segment[${index}]: ${message}`),
          ),
    ),
  ];
}
