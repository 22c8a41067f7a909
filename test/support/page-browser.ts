/** Minimal browser for pages without scripts: keeps cookies and the form token of the last page. */

export interface ShownPage {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Target of a redirect, otherwise null. */
  readonly location: string | null;
}

export class PageBrowser {
  readonly cookies = new Map<string, string>();
  #formToken = "";

  constructor(
    readonly baseUrl: string,
    private readonly headers: Readonly<Record<string, string>> = {},
  ) {}

  get cookie(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  }

  get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<ShownPage> {
    return this.request(path, { headers });
  }

  /** Submits a form of the last page. */
  submit(path: string, fields: Readonly<Record<string, string>> = {}, headers: Readonly<Record<string, string>> = {}): Promise<ShownPage> {
    const body = new URLSearchParams({ form_token: this.#formToken, ...fields });
    return this.request(path, { method: "POST", body, headers: { "Sec-Fetch-Site": "same-origin", ...headers } });
  }

  /** Does not follow redirects. */
  async request(path: string, init: RequestInit & { readonly headers?: Readonly<Record<string, string>> }): Promise<ShownPage> {
    const response = await fetch(new URL(path, this.baseUrl), {
      ...init,
      redirect: "manual",
      headers: { ...this.headers, ...(this.cookies.size > 0 && { Cookie: this.cookie }), ...init.headers },
    });
    for (const line of response.headers.getSetCookie()) this.keep(line);
    const text = await response.text();
    this.#formToken = /name="form_token" value="([^"]*)"/.exec(text)?.[1] ?? this.#formToken;
    return { status: response.status, headers: response.headers, text, location: response.headers.get("location") };
  }

  private keep(line: string): void {
    const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
    if (/; *max-age=0(?:;|$)/i.test(line)) this.cookies.delete(name);
    else this.cookies.set(name, value);
  }
}
