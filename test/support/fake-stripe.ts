/**
 * A server that speaks Stripe's wire format (https://docs.stripe.com/api): form-encoded requests, and the refusals of Stripe: a wrong key,
 * missing and unknown parameters with `param`, and an idempotency key that is reused for another request.
 */
import { createHmac, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { isRecord } from "../../src/lib/json.js";

type Fields = Readonly<Record<string, string>>;
type StripeObject = Record<string, unknown> & { readonly id: string };

interface Kept {
  readonly request: string;
  readonly status: number;
  readonly answer: object;
}

export interface FakeStripe {
  readonly url: string;
  readonly key: string;
  readonly webhookSecret: string;
  /** `POST /v1/customers a=b`, with the idempotency key. */
  readonly requests: { readonly line: string; readonly fields: Fields; readonly idempotencyKey: string | null }[];
  readonly objects: Map<string, StripeObject>;
  /** Of the next charges of saved methods. */
  decline: { readonly code: string; readonly message: string } | null;
  /** A bank decides later on the next charges of saved methods. */
  isPending: boolean;
  /** Taxes can be computed. */
  areAddressesKnown: boolean;
  /** Answers 500 to everything, as it is away. */
  isAway: boolean;
  /** The answer to everything. */
  garbage: { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body: string } | null;
  /** The next requests are carried out, and their answers lost; counts down. */
  lostAnswers: number;
  /** Requests of these lines are carried out, and their answers lost. */
  losing: RegExp | null;
  /** Pays an open checkout with a method that is kept. Returns its payment intent. */
  pay(sessionId: string, overrides?: Record<string, unknown>): StripeObject;
  /** Pays a part of a payment back, as a person does at Stripe. Returns the refund. */
  refund(intentId: string, amount: number, status?: string): StripeObject;
  /** A dispute of a payment, of which no money has moved yet. */
  dispute(intentId: string, amount: number): StripeObject;
  /** Fees are known some time after a payment. */
  areFeesKnown: boolean;
  /** An event about an object as it now is. */
  event(type: string, object: unknown, more?: Record<string, unknown>): { readonly id: string; readonly body: string };
  /** The Stripe-Signature header. */
  sign(body: string, at?: Date, secret?: string): string;
  close(): Promise<void>;
}

/** Parameters that are known, by path; `*` stands for any key. */
const KNOWN: Readonly<Record<string, { readonly required: readonly string[]; readonly optional: readonly string[] }>> = {
  "POST /v1/customers": { required: [], optional: ["email", "name", "metadata.*"] },
  "POST /v1/checkout/sessions": {
    required: ["mode", "line_items.0.quantity", "success_url"],
    optional: [
      ...["customer", "client_reference_id", "cancel_url", "expires_at", "metadata.*", "adaptive_pricing.enabled"],
      ...["line_items.0.price_data.currency", "line_items.0.price_data.unit_amount", "line_items.0.price_data.product_data.name"],
      ...["line_items.0.price_data.tax_behavior", "payment_intent_data.metadata.*", "payment_intent_data.setup_future_usage"],
      ...["automatic_tax.enabled", "customer_update.address", "invoice_creation.enabled", "invoice_creation.invoice_data.metadata.*"],
    ],
  },
  "POST /v1/refunds": { required: [], optional: ["payment_intent", "charge", "amount", "metadata.*"] },
  "POST /v1/payment_intents": {
    required: ["amount", "currency"],
    optional: ["customer", "payment_method", "off_session", "confirm", "description", "metadata.*"],
  },
  "POST /v1/invoices": {
    required: ["customer", "currency", "collection_method", "automatic_tax.enabled"],
    optional: ["auto_advance", "pending_invoice_items_behavior", "metadata.*"],
  },
  "POST /v1/invoiceitems": { required: ["customer", "invoice", "amount", "currency"], optional: ["description", "tax_behavior"] },
  "POST /v1/billing_portal/sessions": { required: ["customer"], optional: ["return_url"] },
};

export async function startFakeStripe(): Promise<FakeStripe> {
  const key = `sk_test_${randomBytes(12).toString("hex")}`;
  const kept = new Map<string, Kept>();
  const server = createServer((req, res) => void serve(req, res));

  async function serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const body = await text(req);
    const { pathname, searchParams } = new URL(req.url ?? "", "http://stripe");
    const fields = toFields(new URLSearchParams(req.method === "POST" ? body : searchParams));
    const idempotencyKey = (req.headers["idempotency-key"] as string | undefined) ?? null;
    fake.requests.push({ line: `${req.method} ${pathname}`, fields, idempotencyKey });
    const [status, answer] = answerTo(`${req.method} ${pathname}`, fields, body, idempotencyKey, req);
    if (fake.losing?.test(`${req.method} ${pathname}`)) {
      req.socket.destroy();
      return;
    }
    if (fake.lostAnswers > 0 && req.method === "POST") {
      fake.lostAnswers -= 1;
      req.socket.destroy();
      return;
    }
    if (fake.garbage) {
      res.writeHead(fake.garbage.status, { "Content-Type": "application/json", ...fake.garbage.headers });
      res.end(fake.garbage.body);
      return;
    }
    res.writeHead(status, { "Content-Type": "application/json", "Request-Id": `req_${randomBytes(6).toString("hex")}` });
    res.end(JSON.stringify(answer));
  }

  function answerTo(line: string, fields: Fields, body: string, idempotencyKey: string | null, req: IncomingMessage): [number, object] {
    if (fake.isAway) return [500, { error: { type: "api_error", message: "An unknown error occurred" } }];
    if (req.headers.authorization !== `Bearer ${key}`) {
      return [401, { error: { type: "invalid_request_error", message: "Invalid API Key provided: sk_test_****" } }];
    }
    if (req.method === "POST" && !(req.headers["content-type"] ?? "").startsWith("application/x-www-form-urlencoded")) {
      return [400, { error: { type: "invalid_request_error", message: "The request must be form-encoded" } }];
    }
    const earlier = idempotencyKey === null ? undefined : kept.get(idempotencyKey);
    const request = `${line} ${body}`;
    if (earlier && earlier.request !== request) {
      const message = `Keys for idempotent requests can only be used with the same parameters they were first used with.`;
      return [400, { error: { type: "idempotency_error", message } }];
    }
    if (earlier) return [earlier.status, earlier.answer];
    const fault = faultOf(line, fields);
    const [status, answer] = fault ? [400, { error: { type: "invalid_request_error", ...fault } }] : act(line, fields);
    if (idempotencyKey !== null) kept.set(idempotencyKey, { request, status, answer });
    return [status, answer];
  }

  function make(prefix: string, object: string, more: Record<string, unknown>): StripeObject {
    const made = {
      id: `${prefix}_${randomBytes(8).toString("hex")}`,
      object,
      created: Math.floor(Date.now() / 1_000),
      livemode: false,
      ...more,
    };
    fake.objects.set(made.id, made);
    return made;
  }
  const missing = (param: string, id: string): [number, object] => [
    400,
    { error: { type: "invalid_request_error", code: "resource_missing", param, message: `No such ${param}: '${id}'` } },
  ];

  function act(line: string, fields: Fields): [number, object] {
    const { objects } = fake;
    const customer = fields.customer === undefined ? null : objects.get(fields.customer);
    if (customer === undefined) return missing("customer", fields.customer ?? "");
    const metadata = below(fields, "metadata");
    switch (line) {
      case "POST /v1/customers":
        return [
          200,
          make("cus", "customer", { email: fields.email ?? null, metadata, invoice_settings: { default_payment_method: null } }),
        ];
      case "POST /v1/checkout/sessions": {
        const amount = Number(fields["line_items.0.price_data.unit_amount"]) * Number(fields["line_items.0.quantity"]);
        if (amount < 50) return [400, { error: { type: "invalid_request_error", code: "amount_too_small", message: "too small" } }];
        const session = make("cs_test", "checkout.session", {
          ...{ mode: fields.mode, status: "open", payment_status: "unpaid", payment_intent: null, customer: fields.customer ?? null },
          ...{ client_reference_id: fields.client_reference_id ?? null, metadata, amount_subtotal: amount, amount_total: amount },
          ...{ currency: fields["line_items.0.price_data.currency"], success_url: fields.success_url },
          ...{ intent_metadata: below(fields, "payment_intent_data.metadata"), invoices: fields["invoice_creation.enabled"] === "true" },
          keepsMethod: fields["payment_intent_data.setup_future_usage"] === "off_session",
        });
        return [200, Object.assign(session, { url: `https://checkout.stripe.example/c/pay/${session.id}` })];
      }
      case "POST /v1/refunds": {
        const intent = objects.get(fields.payment_intent ?? "");
        if (!intent) return missing("payment_intent", fields.payment_intent ?? "");
        const charge = objects.get(String(intent.latest_charge)) as StripeObject;
        const left = Number(charge.amount) - Number(charge.amount_refunded);
        const amount = fields.amount === undefined ? left : Number(fields.amount);
        if (left === 0) {
          return [
            400,
            { error: { type: "invalid_request_error", code: "charge_already_refunded", message: "has already been refunded." } },
          ];
        }
        return [200, Object.assign(fake.refund(intent.id, amount), { metadata })];
      }
      case "GET /v1/refunds": {
        const data = [...objects.values()]
          .filter((each) => each.object === "refund" && each.payment_intent === fields.payment_intent)
          .reverse();
        const from = fields.starting_after === undefined ? 0 : data.findIndex(({ id }) => id === fields.starting_after) + 1;
        const page = data.slice(from, from + Number(fields.limit ?? 10));
        return [200, { object: "list", data: page, has_more: from + page.length < data.length, url: "/v1/refunds" }];
      }
      case "POST /v1/payment_intents": {
        if (fake.decline) {
          const { code, message } = fake.decline;
          return [402, { error: { type: "card_error", code, message } }];
        }
        const made = makeIntent(Number(fields.amount), fields.currency ?? "", fields.customer ?? null, metadata);
        return [200, fake.isPending ? Object.assign(made, { status: "processing", amount_received: 0 }) : made];
      }
      case "POST /v1/invoices":
        return [
          200,
          make("in", "invoice", {
            ...{ status: "draft", customer: fields.customer, currency: fields.currency, subtotal: 0, total: 0, metadata, number: null },
            automatic_tax: { enabled: true, status: null },
          }),
        ];
      case "POST /v1/invoiceitems": {
        const invoice = objects.get(fields.invoice ?? "");
        if (invoice?.status !== "draft") return missing("invoice", fields.invoice ?? "");
        Object.assign(invoice, { subtotal: Number(invoice.subtotal) + Number(fields.amount) });
        return [200, make("ii", "invoiceitem", { invoice: invoice.id, amount: Number(fields.amount) })];
      }
      case "GET /v1/invoice_payments": {
        const intent = objects.get(fields.invoice ?? "")?.intent;
        const data = intent === undefined ? [] : [{ id: "inpay_1", payment: { type: "payment_intent", payment_intent: intent } }];
        return [200, { object: "list", data, has_more: false, url: "/v1/invoice_payments" }];
      }
      case "POST /v1/billing_portal/sessions":
        return [200, make("bps", "billing_portal.session", { url: `https://billing.stripe.example/p/session/${fields.customer}` })];
      case "GET /v1/invoices": {
        const data = [...objects.values()].filter((each) => each.object === "invoice" && each.customer === fields.customer).reverse();
        return [200, { object: "list", data: data.slice(0, Number(fields.limit ?? 10)), has_more: false, url: "/v1/invoices" }];
      }
      case "GET /v1/payment_intents": {
        const data = [...objects.values()]
          .filter((each) => each.object === "payment_intent" && each.customer === fields.customer)
          .reverse();
        return [200, { object: "list", data, has_more: false, url: "/v1/payment_intents" }];
      }
      default: {
        const [, changed = "", act] = /^(?:POST|DELETE) \/v1\/(?:invoices|payment_intents)\/(\w+)(?:\/(\w+))?$/.exec(line) ?? [];
        const target = objects.get(changed);
        if (target) return change(line, target, act, metadata);
        const [, kind, id = "", rest] = /^GET \/v1\/(\w+)\/(\w+)(?:\/(\w+))?$/.exec(line) ?? [];
        const found = objects.get(id);
        if (!found)
          return [404, { error: { type: "invalid_request_error", code: "resource_missing", param: "id", message: `No such ${kind}` } }];
        if (rest !== "payment_methods") return [200, expand(found, fields)];
        return [200, { object: "list", data: methods.get(id)?.map((each) => ({ id: each })) ?? [], has_more: false, url: "" }];
      }
    }
  }

  /** Of an invoice or payment intent. */
  function change(line: string, target: StripeObject, act: string | undefined, metadata: Fields): [number, object] {
    const refuse = (status: number, type: string, code: string): [number, object] => [status, { error: { type, code, message: code } }];
    if (line.startsWith("DELETE")) {
      if (target.status !== "draft") return refuse(400, "invalid_request_error", "invoice_not_editable");
      fake.objects.delete(target.id);
      return [200, { id: target.id, object: "invoice", deleted: true }];
    }
    switch (act) {
      case "finalize": {
        if (!fake.areAddressesKnown) return refuse(400, "invalid_request_error", "customer_tax_location_invalid");
        const total = Math.round(Number(target.subtotal) * 1.19);
        const intent = make("pi", "payment_intent", {
          ...{ amount: total, amount_received: 0, currency: target.currency, customer: target.customer },
          ...{ status: "requires_payment_method", metadata: {} },
        });
        const changes = {
          status: "open",
          total,
          intent: intent.id,
          number: target.id,
          automatic_tax: { enabled: true, status: "complete" },
        };
        return [200, Object.assign(target, changes)];
      }
      case "pay": {
        if (fake.decline) return [402, { error: { type: "card_error", ...fake.decline } }];
        const intent = fake.objects.get(String(target.intent)) as StripeObject;
        const paid = makeIntent(Number(target.total), String(target.currency), String(target.customer), {});
        fake.objects.delete(paid.id);
        Object.assign(fake.objects.get(String(paid.latest_charge)) ?? {}, { payment_intent: intent.id });
        Object.assign(intent, { status: "succeeded", amount_received: target.total, latest_charge: paid.latest_charge });
        return [200, Object.assign(target, { status: "paid" })];
      }
      case "void":
        return [200, Object.assign(target, { status: "void" })];
      default:
        return [200, Object.assign(target, { metadata: { ...(target.metadata as Fields), ...metadata } })];
    }
  }

  /** Of payments, whose charge has a movement of the account once it is known. */
  function expand(found: StripeObject, fields: Fields): StripeObject {
    if (fields["expand.0"] !== "latest_charge.balance_transaction") return found;
    const charge = fake.objects.get(String(found.latest_charge));
    return { ...found, latest_charge: { ...charge, balance_transaction: fake.areFeesKnown ? charge?.balance_transaction : null } };
  }

  const methods = new Map<string, string[]>();
  function makeIntent(amount: number, currency: string, customer: string | null, metadata: Fields): StripeObject {
    const intent = make("pi", "payment_intent", { amount, amount_received: amount, currency, customer, status: "succeeded", metadata });
    const charge = make("ch", "charge", { payment_intent: intent.id, amount, amount_refunded: 0, currency, metadata });
    const fee = Math.round(amount * 0.029) + 30;
    Object.assign(charge, {
      balance_transaction: make("txn", "balance_transaction", { amount, fee, net: amount - fee, currency, type: "charge" }),
    });
    return Object.assign(intent, { latest_charge: charge.id });
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const fake: FakeStripe = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    key,
    webhookSecret: `whsec_${randomBytes(24).toString("base64url")}`,
    requests: [],
    objects: new Map(),
    decline: null,
    isPending: false,
    areFeesKnown: true,
    areAddressesKnown: true,
    isAway: false,
    garbage: null,
    lostAnswers: 0,
    losing: null,
    pay: (sessionId, overrides = {}) => {
      const session = fake.objects.get(sessionId);
      if (!session) throw new Error(`no session ${sessionId}`);
      Object.assign(session, overrides);
      const customer = session.customer as string | null;
      const intent = makeIntent(Number(session.amount_total), String(session.currency), customer, session.intent_metadata as Fields);
      if (customer !== null && session.keepsMethod === true) methods.set(customer, [`pm_${randomBytes(8).toString("hex")}`]);
      if (session.invoices === true) {
        const number = `TEST-${String(fake.objects.size).padStart(4, "0")}`;
        const page = {
          hosted_invoice_url: `https://invoice.stripe.example/${number}`,
          invoice_pdf: `https://invoice.stripe.example/${number}/pdf`,
        };
        make("in", "invoice", { customer, number, status: "paid", total: session.amount_total, currency: session.currency, ...page });
      }
      Object.assign(session, { status: "complete", payment_status: "paid", payment_intent: intent.id });
      return intent;
    },
    refund: (intentId, amount, status = "succeeded") => {
      const intent = fake.objects.get(intentId);
      const charge = fake.objects.get(String(intent?.latest_charge));
      if (!charge) throw new Error(`no payment ${intentId}`);
      if (status !== "failed") Object.assign(charge, { amount_refunded: Number(charge.amount_refunded) + amount });
      return make("re", "refund", { amount, payment_intent: intentId, charge: charge.id, currency: charge.currency, status, metadata: {} });
    },
    dispute: (intentId, amount) => {
      const intent = fake.objects.get(intentId);
      const payment = { payment_intent: intentId, charge: intent?.latest_charge, currency: intent?.currency };
      return make("dp", "dispute", { ...payment, amount, status: "needs_response", balance_transactions: [] });
    },
    event: (type, object, more = {}) => {
      const id = `evt_${randomBytes(10).toString("hex")}`;
      const event = { id, object: "event", api_version: "2026-10-28.endive", type, livemode: false, data: { object }, ...more };
      return { id, body: JSON.stringify(event) };
    },
    sign: (body, at = new Date(), secret = fake.webhookSecret) => {
      const seconds = Math.floor(at.getTime() / 1_000);
      return `t=${seconds},v1=${createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex")}`;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return fake;
}

/** `a[b][0]` to `a.b.0`. */
function toFields(form: URLSearchParams): Fields {
  return Object.fromEntries([...form].map(([name, value]) => [name.replaceAll("]", "").replaceAll("[", "."), value]));
}

function below(fields: Fields, path: string): Fields {
  const found = Object.entries(fields).filter(([name]) => name.startsWith(`${path}.`));
  return Object.fromEntries(found.map(([name, value]) => [name.slice(path.length + 1), value]));
}

function faultOf(line: string, fields: Fields): { readonly param: string; readonly message: string; readonly code: string } | null {
  const known = KNOWN[line];
  if (!isRecord(known)) return null;
  const param = known.required.find((name) => !(name in fields));
  if (param !== undefined) return { param, code: "parameter_missing", message: `Missing required param: ${param}.` };
  const all = [...known.required, ...known.optional];
  const isKnown = (name: string) => all.some((each) => each === name || (each.endsWith(".*") && name.startsWith(each.slice(0, -1))));
  const unknown = Object.keys(fields).find((name) => !isKnown(name));
  return unknown === undefined ? null : { param: unknown, code: "parameter_unknown", message: `Received unknown parameter: ${unknown}` };
}
