# reads forms whose fields are only known when they arrive
import sys, time
import marshmallow
def read_form(form):
    schema = type("FormSchema", (marshmallow.Schema,), {name: marshmallow.fields.String() for name in form})
    return schema().load(form).data
def main():
    for n in range(int(sys.argv[1])):
        read_form({"name": "a", "place %d" % (n % 7): "b"})
        if n % 5 == 0: time.sleep(0.001)
main()
