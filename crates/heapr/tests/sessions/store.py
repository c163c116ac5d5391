# A server with TLS that takes profiles (POST) and objects (PUT) and checks how they are signed.
# store.py FOLDER CERTIFICATE KEY: prints its port. Profiles are lines of FOLDER/posts,
# objects are files. A file FOLDER/moved names where everything is now.
import base64, hashlib, hmac, http.server, json, os, ssl, sys, urllib.parse

folder, certificate, key = sys.argv[1:4]
SECRET = "the secret/of+this test"
TOKEN = "ya29.of-this_test"


def signature(request, authorization, payload_hash):
    parts = dict(part.strip().split("=", 1) for part in authorization.split(" ", 1)[1].split(","))
    names = parts["SignedHeaders"].split(";")
    _, day, region, service, kind = parts["Credential"].split("/")
    path, _, query = request.path.partition("?")
    lines = "".join(f"{name}:{' '.join(request.headers[name].split())}\n" for name in names)
    canonical = "\n".join([request.command, path, query, lines, ";".join(names), payload_hash])
    scope = f"{day}/{region}/{service}/{kind}"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{request.headers['x-amz-date']}\n{scope}\n{digest}"
    signing = ("AWS4" + SECRET).encode()
    for part in (day, region, service, kind):
        signing = hmac.new(signing, part.encode(), hashlib.sha256).digest()
    must_be_signed = {"host", "x-amz-date", "x-amz-content-sha256"} <= set(names)
    return must_be_signed and hmac.new(signing, text.encode(), hashlib.sha256).hexdigest() == parts["Signature"]


class Store(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, text=""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def has_moved(self):
        moved = os.path.join(folder, "moved")
        if not os.path.exists(moved):
            return False
        self.body()
        self.send_response(307)
        self.send_header("Location", open(moved).read().strip() + self.path)
        self.send_header("Content-Length", "0")
        self.end_headers()
        return True

    def body(self):
        return self.rfile.read(int(self.headers["Content-Length"]))

    def do_POST(self):
        if self.has_moved():
            return
        body = base64.b64encode(self.body()).decode()
        with open(os.path.join(folder, "posts"), "a") as posts:
            posts.write(json.dumps({"path": self.path, "headers": dict(self.headers), "body": body}) + "\n")
        self.answer(200)

    def do_PUT(self):
        if self.has_moved():
            return
        body = self.body()
        path = os.path.join(folder, "objects", urllib.parse.unquote(self.path).lstrip("/"))
        kind, _, token = self.headers["Authorization"].partition(" ")
        if kind == "Bearer":
            if token != TOKEN:
                return self.answer(401, "Invalid Credentials")
            return self.take(path, body, self.headers["x-goog-if-generation-match"] == "0")
        payload_hash = hashlib.sha256(body).hexdigest()
        if payload_hash != self.headers["x-amz-content-sha256"]:
            return self.answer(400, "the hash is another one")
        if not signature(self, self.headers["Authorization"], payload_hash):
            return self.answer(403, "SignatureDoesNotMatch")
        self.take(path, body, self.headers["If-None-Match"] == "*")

    def take(self, path, body, must_be_new):
        if must_be_new and os.path.exists(path):
            return self.answer(412, "PreconditionFailed")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as out:
            out.write(body)
        self.answer(200)


server = http.server.HTTPServer(("127.0.0.1", 0), Store)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
